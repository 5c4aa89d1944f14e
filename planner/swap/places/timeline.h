// From a plan as it was simulated to other places for it: when each block is on the device, copies included, and the
// layout problem that this leaves. What was planned by operations, or by times that were guessed, lies on bytes for
// longer than it needs; and of a block that lives longer than an iteration each place is free between its turns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/places/layout_problem.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

// Time is a circle of as many iterations as offsets take to repeat, in moments: only their order counts. A block that
// lives through all iterations is one buffer. Of any other one each instance is a buffer of its own, in the order of
// Place::offsets, as each may lie elsewhere: whoever follows the plan has to know in which iteration it was born.
struct TimelineProblem {
  LayoutProblem layout;
  double added_ns = 0;  // of the plan
  // Of each swap: the operation that had ended when its copy in began, the last one of the rounds; kNever: none.
  std::vector<std::uint64_t> in_after;
};

// Of a plan with places, as the simulator has it in its last iterations, which it records. Nothing where it can't be
// simulated, or its offsets repeat after more than four iterations. O(k n + i log i) for k iterations of n operations.
std::optional<TimelineProblem> make_timeline_problem(const Problem& problem, const Liveness& liveness,
                                                     const Decisions& decisions, Simulator& simulator,
                                                     Returns returns = Returns::kWhereTheyWere);

// The plan with other places, in which it takes no longer: the lowest that is found, or with a capacity any within
// that. Where blocks may return elsewhere and there is time, each of their stays has a place; only where that comes to
// nothing, all return to where they were, in what is left of the time. Copies in are issued as soon as the places
// allow, or when they began. Nothing where none is found.
std::optional<Decisions> lay_out_in_time(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                         const layout::Limits& limits,
                                         std::optional<std::uint64_t> capacity = std::nullopt);

// Places for a plan that was made by load alone, in which it takes no longer than within so many bytes of load, without
// a layout, or but little longer where the simulator has it otherwise in the end: the lowest that are found, or with a
// capacity any within that. Nothing where none are found, or a block lives for longer than an iteration.
std::optional<Decisions> lay_out_as_by_load(const Problem& problem, const Liveness& liveness,
                                            const Decisions& decisions, std::uint64_t load,
                                            const layout::Limits& limits,
                                            std::optional<std::uint64_t> capacity = std::nullopt);

// Whether a block has several offsets, between whose turns others may come to lie.
bool has_turns(const Decisions& decisions);

}  // namespace memopt::swap
