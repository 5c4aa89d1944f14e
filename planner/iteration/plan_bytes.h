// Writes a plan as it crosses to the agent (shm/plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "shm/plan.h"

namespace memopt::planner {

// What a plan is made of.
struct PlanParts {
  shm::PlanHeader header{};  // signature, operations and what is for status; the rest is filled in
  std::vector<shm::PlannedLane> lanes;
  std::vector<shm::PlannedMalloc> mallocs;
  std::vector<shm::Place> places;
  std::vector<std::uint64_t> persistent;
  std::vector<shm::PlannedPages> pages;
  std::vector<shm::PlannedSwap> swaps;
  std::vector<shm::PlannedPoint> points;
  std::vector<shm::PlannedChunk> chunks;
};

// Of one iteration; without what its layout decides.
shm::PlanHeader header_of(const IterationPlan& plan);

// `persistent`: numbers of the blocks that live through all iterations.
PlanParts plan_parts(const IterationPlan& plan, const std::vector<std::uint64_t>& persistent);

// Without a number. Empty if it would exceed shm::kMaxPlanBytes.
std::vector<std::byte> plan_bytes(const PlanParts& parts);

}  // namespace memopt::planner
