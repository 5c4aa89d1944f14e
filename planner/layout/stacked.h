// Internal to the room: the plainest solution there is.
#pragma once

#include "planner/layout/problem.h"

namespace memopt::layout {

// One on top of the other, above all that is fixed, in the order of the problem. O(n).
Solution stacked(const Problem& problem);

}  // namespace memopt::layout
