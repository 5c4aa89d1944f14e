// Whether a solution holds, and how small any could be: by a sweep over time, sharing nothing with the solvers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/iteration/layout/problem.h"

namespace memopt::planner::layout {

// What is wrong with the solution; nothing if every buffer has its bytes to itself while it needs them. O(n log n).
std::optional<std::string> find_fault(const Problem& problem, const Solution& solution);

// The largest sum of bytes needed at once: no solution is smaller.
std::uint64_t lower_bound(const Problem& problem);

}  // namespace memopt::planner::layout
