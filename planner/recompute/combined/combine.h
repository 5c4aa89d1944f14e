// Swaps and recomputation together. Swaps that hide behind the computation cost nothing, so they are chosen first, as
// many as there is time for: of all blocks, or of those only that are dear to make again, by several prices, since the
// time for copies is what is short (as in Capuchin, Peng et al., ASPLOS 2020, 4.4, which decides block by block).
// Beside them launches are replayed, by the search that also plans without swaps, for which they are absences
// (memory.h). What that comes to is simulated, waits included; the best goes on for the rest of the time.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/combined/hidden_swaps.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/recompute/search/foresight.h"
#include "planner/recompute/search/search.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

struct Combined {
  Steps steps;
  Cost cost;                                  // of the steps alone
  swap::Decisions decisions;                  // of extend(problem, graph, steps), whose limit is the budget
  double waits_ns = 0;                        // an iteration, beside the replays
  std::uint64_t bytes_out = 0, bytes_in = 0;  // an iteration
  std::uint64_t load = 0;  // the least limit under which it takes no longer; with places: what is resident at most
  std::optional<std::uint64_t> footprint = {};  // of the places that the decisions have; none: they have none

  double added_ns() const { return cost.added_ns + waits_ns; }
};

// What these steps, which must hold and cost `cost`, and swaps of the iteration with them, come to, if they hold within
// the limit of `extended`, which is its load then. Where that has a layout, so must the decisions. Swaps that begin or
// end within a launch that touches their block are made to be beside it. `liveness`: of `extended`. Thread-safe.
std::optional<Combined> judge(Steps steps, Cost cost, const Extended& extended, const swap::Liveness& liveness,
                              swap::Decisions decisions);

// Of a plan that holds within `budget`: its load. Some ten simulations where it swaps.
void find_load(const swap::Problem& problem, const Graph& graph, std::uint64_t budget, Combined& plan);

// Swaps alone, or what is computed again and swaps beside it.
enum class Means : std::uint8_t { kSwaps, kBoth };

// What a search goes on from that is begun again, within another budget.
struct Progress {
  HiddenSwaps hidden;      // beside which the best plan was found
  Weights weights;         // of its replays
  bool has_begun = false;  // else it begins from nothing
};

// The fastest plan that is found within `budget` bytes; with kBoth no slower than those that are found by search()
// alone, and by swaps alone, in the parts of the time that they have, unless there is `progress`. Copies are the
// problem's machine's. Nothing where none is found. Without a time limit the same seed and threads give the same plan;
// `attempts` are those of each search that is part of it. `progress`, of kBoth: where it goes on from, in place of
// trying everything, and how far it came; replays alone, and swaps alone, are for the caller to look for then.
// Thread-safe.
std::optional<Combined> combine(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                std::uint64_t budget, Means means, const SearchLimits& limits,
                                Progress* progress = nullptr);

}  // namespace memopt::recompute
