// The strategies of `memoptctl plan` by name, and plans by them. Every plan is verified before it is returned.
#pragma once

#include <string>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/verify.h"
#include "planner/swap/strategies/auto_swap.h"
#include "tools/memoptctl/swap/swap_options.h"

namespace memopt::tools {

struct SwapStrategy {
  std::string name;
  bool searches =
      false;            // memopt's own: for a time, with threads, for an objective; the others lay out what they choose
  std::string missing;  // why this build has none; empty: it has
};

// In the order in which they are shown.
const std::vector<SwapStrategy>& swap_strategies();

// Throws std::invalid_argument: there is none of that name, or not in this build; names the option.
const SwapStrategy& find_strategy(const std::string& option, const std::string& name);

// Throws std::invalid_argument for an option that was given and that none of the strategies looks at.
void refuse_ignored(const SwapPlanOptions& options, const std::vector<const SwapStrategy*>& strategies);

struct SwapPlan {
  bool feasible = false;
  swap::Decisions decisions;  // where infeasible: the smallest that was found, if any
  // Of the decisions, without layout the least limit under which they hold; where infeasible the least limit that can
  // be met, 0 if nothing was found at no added time.
  std::uint64_t footprint = 0;
  std::size_t candidates = 0;
  double seconds = 0;   // that planning took
  swap::Report report;  // of a feasible plan: it holds
};

// For the least added time within problem.limit, or the least footprint at no added time, as options.objective says.
// Throws std::runtime_error if the plan does not hold, which is a mistake of ours.
SwapPlan plan_swaps(const SwapStrategy& strategy, const swap::Problem& problem, const swap::Liveness& liveness,
                    const SwapPlanOptions& options);

}  // namespace memopt::tools
