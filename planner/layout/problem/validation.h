// Checks problems and solutions, and computes the load. Shares no code with the solvers. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

// What a buffer is called in a fault: "buffer 3", unless the caller has better names.
using Naming = std::function<std::string(std::size_t buffer)>;
std::string by_number(std::size_t buffer);

// What is wrong with the problem itself: sizes or alignments of 0, intervals empty or out of order, fixed buffers that
// conflict, and sums that solvers could not represent: all sizes, aligned, and the end of the highest fixed buffer must
// stay below 2^63. Nothing if it can be solved (without its capacity). O(n log n).
std::optional<std::string> find_fault(const Problem& problem, const Naming& name = by_number);

// What is wrong with the solution; nothing if no two buffers that overlap in time share bytes, and alignments, fixed
// offsets, the height and the capacity are respected. The problem must be valid. O(n log n) in intervals.
std::optional<std::string> validate(const Problem& problem, const Solution& solution, const Naming& name = by_number);

// The load: the largest sum of bytes live at once, or the end of the highest fixed buffer if that is more. No solution
// is lower. O(n log n).
std::uint64_t load_bound(const Problem& problem);

}  // namespace memopt::layout
