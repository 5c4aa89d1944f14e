// Whether problems and solutions hold, and how small any solution could be. Shares nothing with the solvers.
// Thread-safe: nothing is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/layout/problem.h"

namespace memopt::layout {

// What is wrong with the problem itself: sizes or alignments of 0, intervals empty or out of order, sums beyond 2^63,
// fixed buffers in each other's way. Nothing if it can be solved (without its capacity). O(n log n).
std::optional<std::string> find_fault(const Problem& problem);

// What is wrong with the solution; nothing if each buffer has its bytes to itself while it needs them, alignments,
// fixed places, the height and the capacity are as they should be. The problem must hold. O(n log n) in intervals.
std::optional<std::string> validate(const Problem& problem, const Solution& solution);

// The largest sum of bytes needed at once, or the end of the highest fixed buffer if that is more: no solution is
// smaller. O(n log n).
std::uint64_t load_bound(const Problem& problem);

}  // namespace memopt::layout
