// Writes a planned iteration as JSON of the format memopt-plan-1, for checkers that share nothing with the planner.
#pragma once

#include <ostream>
#include <string>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

// Persistent blocks are put behind the slab, one after the other. Times are those of the records, from the boundary on.
void write_plan_json(const OperationStore& store, const IterationPlan& plan, const std::string& name,
                     std::ostream& out);

}  // namespace memopt::planner
