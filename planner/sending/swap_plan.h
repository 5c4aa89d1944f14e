// A plan that swaps, as it crosses to the agent (docs/formats/plan-wire.md): what planner/swap decided for an iteration
// that planner/iteration found, with the iteration's own operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/operation_store.h"
#include "planner/sending/staying_pages.h"
#include "planner/swap/model/model.h"
#include "shm/plan.h"

namespace memopt::planner {

// The operations of a swap problem that are one operation of the program are one launch of several blocks: none of them
// may leave while it runs. `ranks`: of the problem's operations (IterationProblem).
void join_launches(const std::vector<std::uint64_t>& ranks, swap::Problem& problem);

// Why nothing in an iteration that was observed can be swapped, if that is so: it says nothing of accesses, or of time.
std::optional<std::string> why_not_swapped(const swap::Problem& problem);

struct SwapPlanParts {
  const swap::Problem&
      problem;  // of an IterationProblem, with launches joined and pages in the place of blocks that stay
  const std::vector<StayingPages>& pages;  // these
  const swap::Decisions& decisions;
  const std::vector<std::uint64_t>& ranks;
  double added_ns = 0;             // an iteration
  std::uint64_t otherwise_ns = 0;  // that one takes without them, on demand; 0: not known
};

// Made while the store is as it was when the plan was found; used at any time later. Memory: that of the operations.
class SwapPlanWriter {
 public:
  // `persistent`: numbers of the plan's persistent blocks, in its order.
  SwapPlanWriter(const OperationStore& store, const IterationPlan& plan, std::vector<std::uint64_t> persistent);

  // The decisions must hold (planner/swap/simulation/verify.h). Empty, with the reason in `fault`, where an agent could
  // not follow them: mallocs that it can't tell apart, operations of threads that allocate nothing, or a plan that is
  // too large. O(n log n). Throws std::logic_error for swaps of another iteration.
  std::vector<std::byte> bytes(const SwapPlanParts& swaps, std::string& fault) const;

 private:
  shm::PlanHeader header_;
  std::vector<LaneMallocs> lanes_;
  std::vector<std::optional<shm::PlannedPoint>> points_;  // by rank
  std::vector<std::uint64_t> persistent_;
};

}  // namespace memopt::planner
