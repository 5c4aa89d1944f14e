// What callbacks.cpp reports to: plugin.cpp or host.cpp, whichever is linked.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cudasim::instrument {

enum class Access : int { kRead = 0, kWrite = 1 };

void record(const void* address, std::size_t size, Access access);

}  // namespace cudasim::instrument
