#pragma once

// Where the generated stubs end: says once per function that it is not there, notes cudaErrorNotSupported and returns
// it.

#include <driver_types.h>

#include <atomic>

namespace cudart {

cudaError_t report_missing(const char* name, std::atomic<bool>& said);

}  // namespace cudart
