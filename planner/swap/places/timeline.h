// From a plan as it was simulated to other places for it: when each block is on the device, copies included, and the
// layout problem that this leaves. What was planned by operations, or by times that were guessed, lies on bytes for
// longer than it needs; and of a block that lives longer than an iteration each place is free between its turns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

// Time is a circle, in moments: only their order counts. In step, it has `rounds` iterations, and of a block that comes
// and goes each of so many instances is a buffer of its own, as each may lie elsewhere. Else it has one iteration, and
// a block has the offsets that it had: of several each is taken all the time, as nothing says which is whose.
struct TimelineProblem {
  layout::Problem problem;
  std::vector<std::uint32_t> first;    // by block: its first buffer; the end behind the last block
  std::vector<std::uint32_t> turn_of;  // by buffer: which of the block's offsets it is
  std::uint32_t rounds = 1;
  // Of each swap: the operation that had ended when its copy in began, the last one of the rounds; kNever: none.
  std::vector<std::uint64_t> in_after;
};

// Of a plan with places, as the simulator has it in its last iterations, which it records. Nothing where it can't be
// simulated, or its offsets repeat after more than four iterations. O(k n + i log i) for k iterations of n operations.
std::optional<TimelineProblem> make_timeline_problem(const Problem& problem, const Liveness& liveness,
                                                     const Decisions& decisions, Simulator& simulator, bool in_step);

// The plan with other places, in which it takes no longer, and copies in that are issued as soon as these allow, or
// when they began: the lowest that is found, or with a capacity any within that. Nothing where none is found.
std::optional<Decisions> lay_out_in_time(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                         const layout::Limits& limits, std::optional<std::uint64_t> capacity,
                                         bool in_step);

}  // namespace memopt::swap
