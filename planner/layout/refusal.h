// Internal to the room: why a solver does not take a problem.
#pragma once

#include <optional>
#include <string>

#include "planner/layout/problem.h"

namespace memopt::layout {

// Where all sizes with their alignments, or the place of a fixed buffer, come to 2^exponent (below 63) or more. O(n).
std::optional<std::string> refuse_sums_from(unsigned exponent, const Problem& problem);

}  // namespace memopt::layout
