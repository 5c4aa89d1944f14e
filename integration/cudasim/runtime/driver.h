#pragma once

// The way to the driver: libcuda.so.1, opened at the first call that needs it, every entry point fetched through
// cuGetProcAddress with its ABI version and the meaning of stream 0. Nothing here is linked against libcuda.
//
// Threads: any. The tables are written once, before `load_driver()` first returns success, and never change or go away.

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <driver_types.h>

#include "driver_entry_points.h"

namespace cudart {

// What stream 0 means: the stream that all threads share, or one stream a thread (nvcc --default-stream per-thread).
enum class DefaultStream { kLegacy, kPerThread };

struct DriverTable {
#define CUDASIM_PLAIN(name, version) PFN_##name##_v##version name;
#define CUDASIM_STREAM(name, version, per_thread_version, suffix) PFN_##name##_v##version name;
  CUDASIM_DRIVER_ENTRY_POINTS(CUDASIM_PLAIN, CUDASIM_STREAM)
#undef CUDASIM_PLAIN
#undef CUDASIM_STREAM
};

// Opens the driver and calls cuInit once per process. The outcome, good or bad, is remembered:
// cudaErrorInsufficientDriver where there is no driver or it is too old, cudaErrorStubLibrary for the toolkit's stub,
// else what cuInit answered.
cudaError_t load_driver();

// The entry points; an unknown one is null. Valid after load_driver() succeeded.
const DriverTable& driver(DefaultStream mode = DefaultStream::kLegacy);

// The driver's own look-up function, for programs that ask for entry points. Null before load_driver() succeeded.
PFN_cuGetProcAddress_v12000 driver_look_up();

// The driver's version, 0 where there is none. Does not initialise the driver.
int driver_version();

}  // namespace cudart
