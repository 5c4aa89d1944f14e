// The intervals in which blocks are resident, by operations: what follows from a problem and swaps.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

inline constexpr std::int32_t kNoSwap = -1;

// From operation `first` to operation `last`, inclusive, as positions of the instance born in iteration 0.
struct ResidencyInterval {
  std::uint32_t block = 0;
  std::int32_t in_swap = kNoSwap;   // that brings it in before `first`; else it begins at `first` itself
  std::int32_t out_swap = kNoSwap;  // that takes it out after `last`; else it ends with `last` itself
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

// Reused between calls, so that nothing is allocated in the end.
struct Residency {
  std::vector<ResidencyInterval> intervals;  // by block, ascending; none of persistent blocks that are never swapped
  std::vector<std::uint32_t> by_block;       // the swaps, by block, then by out_after
};

// The swaps must pass find_swap_fault. Blocks of no bytes have no intervals.
void find_residency(const Problem& problem, const Liveness& liveness, const Decisions& decisions, Residency& result);

}  // namespace memopt::swap
