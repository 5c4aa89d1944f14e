// From swaps to places: the layout problem that they leave, and its solution as offsets and windows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/layout/problem/problem.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/places/returns.h"

namespace memopt::swap {

inline constexpr std::uint32_t kNoBuffer = ~std::uint32_t{0};

// Each block is one buffer that is needed in the intervals in which it is resident, from the issue of a copy in on.
// Time is a circle of one iteration. Swapped blocks are aligned to chunks. A block whose instances would be on their
// own bytes gets several places in turn; each is needed all the time, since others are at one place in every iteration.
// A block that may return elsewhere is several buffers, one for its stays up to each such return.
struct LayoutProblem {
  layout::Problem problem;
  std::vector<std::uint32_t> first;  // by block: its first buffer
  std::vector<std::uint32_t> turns;  // by block: so many buffers, from the first on, are its places in turn
  // By swap: the first of as many buffers that are its block's places when it is back; kNoBuffer: those that it has.
  std::vector<std::uint32_t> returns;
};

// The swaps must pass find_swap_fault. O(i log i).
LayoutProblem make_layout_problem(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                  Returns returns = Returns::kWhereTheyWere);

// Sets the places of the decisions that the layout problem was made of, and where their swaps return to.
void set_places(const Problem& problem, const LayoutProblem& layout, const layout::Solution& solution,
                Decisions& decisions);

}  // namespace memopt::swap
