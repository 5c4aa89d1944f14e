// Internal to planner/layout/portfolio: from the places of some buffers to a solution, without a search from scratch.
#pragma once

#include <cstdint>
#include <span>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

// As `solve_again` (solve.h), whatever that comes to. `bound` must be proven. Empty offsets: the limits were met, or
// nothing is within the capacity.
Solution complete(const Problem& problem, const Sections& sections, std::uint64_t bound,
                  std::span<const std::uint64_t> previous, const Limits& limits);

}  // namespace memopt::layout
