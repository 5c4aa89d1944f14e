// How long a program that waits for its planner does so at most, for one answer, where nothing else is said.
#pragma once

#include <cstdint>

namespace memopt::shm {

inline constexpr std::uint32_t kUsualWait = 10;  // seconds

}  // namespace memopt::shm
