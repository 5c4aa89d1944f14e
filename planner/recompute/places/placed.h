// Our own planner with places: one search over swaps, recomputation and places, within a limit of the footprint.
//
// Plans by load (search, combine) that go on from what was found for more load, down to one whose layout is within the
// limit (descent.h). Swaps alone are searched for with their places at once, by the swap planner; where swaps of a plan
// of both make something wait, they are in the end chosen anew so, in the iteration with its replays.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/recompute/combined/combine.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/places/lives.h"
#include "planner/recompute/search/search.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

// In a search of so much time for so many blocks; in steps where that has no time limit, so that results repeat.
LayoutEffort layout_effort(const swap::Problem& problem, const SearchLimits& limits);

// The fastest plan with places within `limit` bytes that is found: Combined::decisions has places, of all lives.
// `means`: nothing is only computed again. Nothing where none is found, for which it has some seconds more than the
// time. Without a time limit the same seed and threads give the same plan; `attempts` are those of each search that is
// part of it. Thread-safe.
std::optional<Combined> plan_with_places(const swap::Problem& problem, const swap::Liveness& liveness,
                                         const Graph& graph, std::uint64_t limit, std::optional<Means> means,
                                         const SearchLimits& limits);

}  // namespace memopt::recompute
