// Two plans that whoever follows them cannot tell apart: an iteration may be found again after its call stacks have
// changed, or with its boundary elsewhere.
#pragma once

#include <optional>

#include "planner/iteration/iteration_plan.h"

namespace memopt::planner {

// Where the last plan puts the buffers of the next one. Nothing, if their lanes do not have the same mallocs (bytes and
// return address, cyclically) with as many places. Not validated: lifetimes may differ.
std::optional<layout::Solution> places_of_last(const IterationPlan& last, const IterationPlan& next);

}  // namespace memopt::planner
