// What the driver counts. Plain fields under the driver's lock; the C interface and the report read them.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "cudasim/cudasim.h"
#include "held_history.h"
#include "units.h"

namespace cudasim {

struct Counters {
  CudasimCounters totals{};
  std::map<std::string, std::uint64_t, std::less<>> calls;            // by exported symbol
  std::map<std::string, std::uint64_t, std::less<>> unknown_kernels;  // launches by mangled name
  std::map<std::string, std::string, std::less<>> interpreted_ptx;    // by mangled name: what of it, or why all of it
  HeldHistory held_history;
  Duration compute_busy{0}, copy_in_busy{0}, copy_out_busy{0};

  // Called by Memory on each change; keep the peaks.
  void held_changed(std::uint64_t held);
  void live_changed(std::uint64_t live_bytes, std::uint64_t live_blocks, std::uint64_t live_blocks_2mib);

  void reset_peaks();  // the peaks become the current values

 private:
  void reset_live_peak();
  std::uint64_t live_blocks_2mib_ = 0;
};

}  // namespace cudasim
