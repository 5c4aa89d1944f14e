// The solver: a few heuristics, the best result counts. They fail on different problems.
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/iteration/layout/problem.h"

namespace memopt::planner::layout {

struct Heuristics {
  bool smart_pool = true;    // size descending, best fit: always tried first
  bool offset_lines = true;  // three keys
  bool other_orders = true;  // best and first fit by lifetime, area, size
  // Comparisons of two buffers in all; what would exceed it is left out, but for one heuristic. Counted, not timed, so
  // that results repeat.
  std::uint64_t budget = std::uint64_t{1} << 30;
};

struct Outcome {
  Solution solution;
  std::uint64_t lower_bound = 0;
  std::string_view heuristic;  // which was best
};

// Stops at the lower bound. Of equal results the first counts. Not validated: that is the caller's part.
Outcome solve(const Problem& problem, const Heuristics& heuristics = {});

}  // namespace memopt::planner::layout
