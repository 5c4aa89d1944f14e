// Internal to planner/layout/portfolio: from the places of some buffers to a solution, without a search from scratch.
#pragma once

#include <cstdint>
#include <span>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

// As `solve_again` (solve.h), whatever that comes to. Empty offsets: the limits were met, or nothing is within the
// capacity.
Solution complete(const Problem& problem, std::span<const std::uint64_t> previous, const Limits& limits);

}  // namespace memopt::layout
