// From plans by load to one with places: a layout lies above its load by what can't be filled, so that a plan within
// the limit by load may have none. Plans are made for less and less load, by what was too much, until one has a layout
// within the limit, and then for loads between, as each byte of load that is given up costs time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "planner/recompute/combined/combine.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/places/lives.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

// A plan that holds within so many bytes of load, made in a part of the time, 0 to 1; nothing where none is found.
using PlanByLoad = std::function<std::optional<Combined>(std::uint64_t load, double part)>;

// Ends at whichever comes first, but not before the first plan, nor, for two seconds, before one has places.
struct DescentLimits {
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
  std::uint64_t plans = ~std::uint64_t{0};
  const std::atomic<bool>* cancelled = nullptr;  // may be set by another thread; what was found until then counts
  std::optional<std::uint64_t> load = {};        // of the first plan, where one is known that is about right
  double first = 0.15;                           // of the time, for the first plan, on which all others may build
  bool goes_on = false;  // asked for the same load once more, what makes the plans may find a better one
  LayoutEffort layouts;
};

// The fastest plan with places within `limit` that was found; nothing where none was. Deterministic where there are no
// times and `plan` is.
std::optional<Combined> descend(const swap::Problem& problem, const Graph& graph, std::uint64_t limit,
                                const PlanByLoad& plan, const DescentLimits& limits);

}  // namespace memopt::recompute
