// The least added time of all plans within a budget, by trying everything: for iterations with a handful of blocks.
// Written from docs/formats/plan-json.md, "Computing again"; of the planner's code it uses nothing but the iteration.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute::testing {

// Nothing: no plan is within the budget.
std::optional<double> optimum(const swap::Problem& problem, const swap::Liveness& liveness, std::uint64_t budget);

}  // namespace memopt::recompute::testing
