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

// Internal to planner/recompute: who is made of whom, as far as both can be made again.
struct Family {
  std::vector<std::vector<std::uint32_t>> parents, children;  // by block, each once
};
Family find_family(const Graph& graph);
// Of all of a block's makers.
double make_ns(const Graph& graph, std::uint32_t block);

}  // namespace memopt::recompute
