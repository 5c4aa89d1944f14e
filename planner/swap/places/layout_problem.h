// From swaps to places: the layout problem that they leave, and its solution as offsets and windows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/layout/problem/problem.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

// Each block is one buffer that is needed in the intervals in which it is resident, from the issue of a copy in on.
// Time is a circle of one iteration. Swapped blocks are aligned to chunks. A block whose instances would be on their
// own bytes gets several places in turn; each is needed all the time, since others are at one place in every iteration.
struct LayoutProblem {
  layout::Problem problem;
  std::vector<std::uint32_t> first;  // by block: its first buffer, one for each turn; the end behind the last block
};

// The swaps must pass find_swap_fault. O(i log i).
LayoutProblem make_layout_problem(const Problem& problem, const Liveness& liveness, const Decisions& decisions);

std::vector<Place> places_of(const Problem& problem, const Decisions& decisions, const LayoutProblem& layout,
                             const layout::Solution& solution);

}  // namespace memopt::swap
