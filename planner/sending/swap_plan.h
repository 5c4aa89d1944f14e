// A plan that swaps, as it crosses to the agent (docs/formats/plan-wire.md): what planner/swap decided for an iteration
// that planner/iteration found, with the iteration's own operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/operation_store.h"
#include "planner/swap/model.h"

namespace memopt::planner {

// The operations of a swap problem that are one operation of the program are one launch of several blocks: none of them
// may leave while it runs. `ranks`: of the problem's operations in the iteration (PlanJson).
void join_launches(const std::vector<std::uint64_t>& ranks, swap::Problem& problem);

struct SwapPlanParts {
  const swap::Problem& problem;  // as PlanJson writes it of the iteration, with launches joined
  const swap::Decisions& decisions;
  const std::vector<std::uint64_t>& ranks;
  double added_ns = 0;  // an iteration
};

// The decisions must hold (swap/verify.h). The store must be as it was when the plan was found; `persistent`: numbers
// of its persistent blocks, in its order. Empty, with the reason in `fault`, where an agent could not follow it:
// mallocs that it can't tell apart, operations of threads that allocate nothing, or a plan that is too large. O(n log
// n).
std::vector<std::byte> swap_plan_bytes(const OperationStore& store, const IterationPlan& plan,
                                       const std::vector<std::uint64_t>& persistent, std::uint64_t generation,
                                       const SwapPlanParts& swaps, std::string& fault);

}  // namespace memopt::planner
