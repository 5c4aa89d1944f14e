// Whether problems and solutions hold, and how small any solution could be. Shares nothing with the solvers.
// Thread-safe: nothing is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "planner/layout/problem.h"

namespace memopt::layout {

// What a buffer is called in a fault: "buffer 3", unless somebody knows better.
using Naming = std::function<std::string(std::size_t buffer)>;
std::string by_number(std::size_t buffer);

// What is wrong with the problem itself: sizes or alignments of 0, intervals empty or out of order, fixed buffers in
// each other's way, and sums that solvers could not add up: all sizes, aligned, and the end of the highest fixed buffer
// must stay below 2^63. Nothing if it can be solved (without its capacity). O(n log n).
std::optional<std::string> find_fault(const Problem& problem, const Naming& name = by_number);

// What is wrong with the solution; nothing if each buffer has its bytes to itself while it needs them, alignments,
// fixed places, the height and the capacity are as they should be. The problem must hold. O(n log n) in intervals.
std::optional<std::string> validate(const Problem& problem, const Solution& solution, const Naming& name = by_number);

// The largest sum of bytes needed at once, or the end of the highest fixed buffer if that is more: no solution is
// smaller. O(n log n).
std::uint64_t load_bound(const Problem& problem);

}  // namespace memopt::layout
