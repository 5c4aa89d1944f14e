// What no plan can be below, by a linear programme. Needs CLP; a library of its own (memopt_recompute_bounds).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "planner/recompute/model/graph.h"

namespace memopt::recompute {

struct LinearBoundLimits {
  double seconds = 60;  // about: CLP looks at a clock now and then
  std::size_t instants = 1024;
};

struct LinearBound {
  double ns = 0;             // every plan adds as much at least; infinite: there is none
  std::size_t instants = 0;  // of the programme that says so; 0: it is that of bound.h
};

// The largest of least_added_ns (bound.h) and of what programmes as in relaxation.h say. The first one has one instant,
// the launch at which what is needed later takes most; the next ones about twice as many each: those besides at which
// the solution before has most in memory, more than the budget, one between two instants at most. It ends with a
// solution that is nowhere above the budget, or with the limits. Each bound that is better than the one before is
// reported as soon as it is found, that of bound.h first. Thread-safe.
LinearBound linear_least_added_ns(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                  std::uint64_t budget, const LinearBoundLimits& limits = {},
                                  const std::function<void(const LinearBound&)>& report = {});

}  // namespace memopt::recompute
