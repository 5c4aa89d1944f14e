// Writes a planned iteration as JSON of the format memopt-plan-1, for checkers that share nothing with the planner.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

// Persistent blocks are put behind the slab, one after the other. Times are those of the records from the boundary on,
// their ticks made nanoseconds by `nanoseconds`, which must not fall; how long a launch takes is not known, so it
// counts until the next operation, and blocks that it names with others are named again at its end. `name` in UTF-8.
// The rank (planner/iteration/lifetimes.h) of each of the file's operations.
std::vector<std::uint64_t> write_plan_json(const OperationStore& store, const IterationPlan& plan,
                                           const std::string& name,
                                           const std::function<std::uint64_t(std::uint64_t)>& nanoseconds,
                                           std::ostream& out);

}  // namespace memopt::planner
