// Writes a plan as it crosses to the agent (shm/plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

// Empty if it would exceed shm::kMaxPlanBytes.
std::vector<std::byte> plan_bytes(const OperationStore& store, const IterationPlan& plan, std::uint64_t generation);

}  // namespace memopt::planner
