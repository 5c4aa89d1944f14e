// Our own planner of what to compute again: the least added time within a budget.
//
// An iteration that stays within the budget by a policy is a plan; the policy knows the iteration (foresight.h), and
// what it weighs how much is searched for, block by block in the end, as random keys are (Bean, "Genetic algorithms and
// random keys for sequencing and optimization", 1994, of which this is the decoder and a hill climb). It begins with
// the published plans, as far as a part of the time allows, so that it is no worse than these.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/recompute/online/memory.h"
#include "planner/recompute/search/foresight.h"

namespace memopt::recompute {

// Ends at whichever comes first. Without a time limit the same seed and number of threads give the same plan.
struct SearchLimits {
  std::chrono::nanoseconds time = std::chrono::seconds(2);
  std::uint64_t attempts = ~std::uint64_t{0};    // plans tried by each thread, beside the published ones
  const std::atomic<bool>* cancelled = nullptr;  // may be set by another thread; what was found until then counts
  unsigned threads = 1;
  std::uint64_t seed = 1;
};

struct Found {
  Steps steps;
  Cost cost;
  Weights weights;  // of the best that was not published: where more time goes on
};

// Beside swaps that are there already.
struct Beside {
  std::span<const Absence> absences;
  // What a plan adds, waits included; infinite: it does not hold with the swaps. The steps alone do, and cost `cost`.
  // Called by several threads.
  std::function<double(const Steps& steps, const Cost& cost, std::span<const EarlyReturn> early)> added_ns;
};

struct FoundBeside {
  Steps steps;
  Cost cost;  // of the steps alone
  std::vector<EarlyReturn> early;
  double added_ns = 0;
  Weights weights;
};

// Without published plans, which know no swaps. `from`, of both: weights to go on from, in place of where it begins
// otherwise, and, of search(), of the published plans; null: from the beginning.
std::optional<FoundBeside> search_beside(const swap::Problem& problem, const swap::Liveness& liveness,
                                         const Graph& graph, std::uint64_t budget, const Beside& beside,
                                         const SearchLimits& limits, const Weights* from = nullptr);

// Nothing: no policy found a way within the budget, which does not say that there is none.
std::optional<Found> search(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                            std::uint64_t budget, const SearchLimits& limits, const Weights* from = nullptr);

}  // namespace memopt::recompute
