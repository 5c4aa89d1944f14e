// How fast copies between the device and page-locked host memory are, measured: what a plan that swaps is made for.
#pragma once

#include <cuda.h>

#include <string>

#include "agent/process/driver.h"

namespace memopt::agent {

// A swap's copy is made in pieces, so that one of the program's own never waits for more than a piece. None is smaller
// than this, in bytes, but for the last one.
inline constexpr std::uint64_t kLeastPiece = std::uint64_t{2} << 20;

// Of copies in such pieces; a copy of s bytes takes latency + s / rate. Bytes a nanosecond, nanoseconds, and bytes.
struct CopyRates {
  double out = 0;
  double in = 0;
  double out_latency = 0;
  double in_latency = 0;
  std::uint64_t out_piece = kLeastPiece;
  std::uint64_t in_piece = kLeastPiece;
};

// The pieces in which copies are to be made that each take so much longer, in nanoseconds, than their bytes at the
// rate: as large as makes that a small part of it, within bounds, of bytes and of time.
std::uint64_t piece_for(double latency, double bytes_per_ns) noexcept;

// Some milliseconds, for which it waits; on two streams of ours, in the current context, with kLeastPiece bytes of the
// device that nothing else uses meanwhile. False, with the reason: it could not be measured.
bool measure_copies(const Driver& driver, CUdeviceptr device, CUstream out, CUstream in, CopyRates* rates,
                    std::string* why) noexcept;

}  // namespace memopt::agent
