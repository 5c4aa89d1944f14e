// Writes a plan as it crosses to the agent (shm/plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/iteration/iteration_plan.h"

namespace memopt::planner {

// `persistent`: numbers of the blocks that live through all iterations. Empty if it would exceed shm::kMaxPlanBytes.
std::vector<std::byte> plan_bytes(const IterationPlan& plan, const std::vector<std::uint64_t>& persistent,
                                  std::uint64_t generation);

}  // namespace memopt::planner
