// DTR's heuristics as policies (heuristic.h).
#pragma once

#include <cstdint>
#include <memory>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/online/heuristic.h"
#include "planner/recompute/online/memory.h"

namespace memopt::recompute {

// The problem must outlive it. A value takes O(1), but for kDtr and kMsps, whose neighbourhoods are looked at each
// time, and kDtrEq, which looks at the neighbours.
std::unique_ptr<Policy> make_dtr(const swap::Problem& problem, const Graph& graph, Heuristic heuristic);

}  // namespace memopt::recompute
