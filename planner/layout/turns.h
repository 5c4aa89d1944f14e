// Exact search with several strategies: a sequence of turns, of which any number of threads takes the next.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/layout/branch_and_bound.h"
#include "planner/layout/placement_tree.h"
#include "planner/layout/search.h"
#include "planner/layout/sections.h"

namespace memopt::layout {

struct Verdict {
  Progress progress = Progress::kUnfinished;
  std::vector<std::int64_t> offsets;  // if solved; in units, by the numbers of Sections
  std::uint64_t work = 0;             // nodes that were given out
};

// Whether the buffers fit into `capacity` units. Without a time limit and a cancellation the verdict depends neither on
// the number of threads nor on the clock.
Verdict search(const Sections& sections, std::int64_t capacity, const Limits& limits, const Pruning& pruning);

}  // namespace memopt::layout
