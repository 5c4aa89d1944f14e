// The lower bounds of planner/recompute/bounds: the linear one by a module that is loaded when it is asked for, in a
// process of its own; where there is none, that of one launch at a time.
#pragma once

#include <cstdint>
#include <string>

#include "planner/recompute/model/graph.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::tools {

struct RecomputeBound {
  double ns = 0;        // infinite: there is no plan
  std::string missing;  // why it is not the linear one; empty if it is, as far as the time allowed
};

// Takes about that time at most: where it is over, the best until then counts. To be called by programs without other
// threads.
RecomputeBound recompute_bound(const swap::Problem& problem, const swap::Liveness& liveness,
                               const recompute::Graph& graph, std::uint64_t limit, double seconds);

}  // namespace memopt::tools
