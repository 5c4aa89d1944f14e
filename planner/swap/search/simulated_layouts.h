// Internal to the room: plans laid out again as they were simulated (places/timeline.h), and what that allows a search:
// places above the limit may lie within it then. Only where whoever follows the plan keeps to it
// (SearchLimits::in_step); elsewhere all this does nothing, and nothing above the limit is allowed.
#pragma once

#include <cstdint>

#include "planner/layout/problem/limits.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/search/incumbent.h"
#include "planner/swap/search/layouts.h"
#include "planner/swap/search/parallel_annealing.h"
#include "planner/swap/search/search.h"

namespace memopt::swap {

// Not thread-safe. What it is given must outlive it.
class SimulatedLayouts {
 public:
  SimulatedLayouts(const Problem& problem, const Liveness& liveness, const SearchLimits& limits, const Layouts& layouts,
                   Incumbent& incumbent);

  // Of the time of a search with such limits: what is left for `last`. 0 where that would be too little, or there is no
  // time limit.
  static double seconds_at_the_end(const Problem& problem, const SearchLimits& limits);

  // The plan without swaps, after Incumbent::unswapped: lower, if blocks outlive the iteration.
  void unswapped();
  // The best plan so far, in so many seconds: how far it comes below the limit is how far above it others may be.
  void between_rounds(double seconds);
  // The best plan of all, as long as that makes it better. `all`: the search's budget, without what is left for this.
  void last(const Budget& all);

  // So many bytes a search for places may need. The problem has a limit.
  std::uint64_t allowed() const;
  // To the incumbent: as it is within the limit, or as long as nothing is; else as it was simulated, if that is within.
  // The objective is time, and the problem has a layout.
  void offer(Decisions decisions, const layout::Limits& limits);

 private:
  const Problem& problem_;
  const Liveness& liveness_;
  const SearchLimits& limits_;
  const Layouts& layouts_;
  Incumbent& incumbent_;
  double slack_ = 1;  // what is allowed, of the limit
};

}  // namespace memopt::swap
