// Internal to plan.cpp: what a plan promises about swaps and about who lies where when.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "agent/plan/plan.h"

namespace memopt::agent {

// Thrown by the checks, and caught by parse_plan.
struct Refused {
  std::string why;
};

template <typename... Args>
void require(bool holds, fmt::format_string<Args...> otherwise, Args&&... args) {
  if (!holds) [[unlikely]]
    throw Refused{fmt::format(otherwise, std::forward<Args>(args)...)};
}

// By which swaps are ordered first: mallocs before pages.
inline std::pair<bool, std::uint64_t> key_of(const shm::PlannedSwap& swap) {
  return {(swap.flags & shm::kSwapPages) != 0, swap.block};
}

// That swaps_of can find them. O(s).
void check_order_of_swaps(const Plan& plan);

// Blocks, positions, points and places of swaps. The mallocs, places and lanes must have been checked. O(s log p).
void check_swaps(const Plan& plan);

// That no two blocks are on the same bytes at the same operation. The swaps must have been checked. O(n log n).
void check_overlap(const Plan& plan);

}  // namespace memopt::agent
