// What no plan can be below.
#pragma once

#include <cstdint>
#include <functional>

#include "planner/recompute/model/graph.h"

namespace memopt::recompute {

// Nanoseconds that every plan within `budget` adds at least; infinite: there is none.
//
// While a launch runs, what it touches is in memory, and what can't be made again. Of all else that lives then, so much
// has to be away that the rest is within the budget. What is away and used again later is made again behind the launch,
// by its first maker at least. So the least time is that of a fractional knapsack of first makers, each with the bytes
// of the blocks that it brings back; the largest of all launches counts. O(n m log m) for m blocks that live at a time.
//
// Where `ends` says so it is that of the launches until then. Thread-safe.
double least_added_ns(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                      std::uint64_t budget, const std::function<bool()>& ends = {});

}  // namespace memopt::recompute
