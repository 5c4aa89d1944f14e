// Swaps that hide behind the computation, chosen before anything is computed again, and what becomes of them then.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/online/memory.h"
#include "planner/recompute/search/search.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/search/search.h"

namespace memopt::recompute {

// The same limits, but for the time, of a search for swaps.
swap::SearchLimits swap_limits(const SearchLimits& limits, std::chrono::nanoseconds time);

struct HiddenSwaps {
  std::vector<swap::Swap> swaps;  // of the iteration without steps, in order of out_after
  std::vector<Absence> absences;  // of each
};

// As many bytes as can be away at the iteration's peaks without a wait, of blocks that take `least_price` nanoseconds a
// byte, or more, to make again, or can't be: what is cheaper is left to be. Not of blocks that live on into the next
// iteration, and, of very many, only of the `most` that are away for the longest, by bytes and time.
HiddenSwaps find_hidden_swaps(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                              double least_price, std::size_t most, const swap::SearchLimits& limits);

// When a copy in begins: so late that it has about the time for it, one after the other; or, where there is no time for
// that, when its absence ends, and what needs it waits.
enum class CopiesIn : std::uint8_t { kInTime, kAtTheEnd };

// The same in the iteration with the steps that were found beside them. `liveness`: of `extended`. Whether they hold is
// for swap::verify to say.
swap::Decisions place_swaps(const HiddenSwaps& hidden, const Extended& extended, const swap::Liveness& liveness,
                            std::span<const EarlyReturn> early, CopiesIn copies);

}  // namespace memopt::recompute
