// How fast copies between the device and page-locked host memory are, measured: what a plan that swaps is made for.
#pragma once

#include <cuda.h>

#include <string>

#include "agent/process/driver.h"

namespace memopt::agent {

// Of copies in pieces as swaps are made of; a copy of s bytes takes latency + s / rate. Bytes a nanosecond, and
// nanoseconds.
struct CopyRates {
  double out = 0;
  double in = 0;
  double out_latency = 0;
  double in_latency = 0;
};

// No copy of a swap is longer, so that one of the program's own never waits for more than that.
inline constexpr std::uint64_t kMostCopiedAtOnce = std::uint64_t{2} << 20;

// Some milliseconds, for which it waits; on two streams of ours, in the current context, with kMostCopiedAtOnce bytes
// of the device that nothing else uses meanwhile. False, with the reason: it could not be measured.
bool measure_copies(const Driver& driver, CUdeviceptr device, CUstream out, CUstream in, CopyRates* rates,
                    std::string* why) noexcept;

}  // namespace memopt::agent
