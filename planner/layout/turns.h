// Exact search with several strategies: a sequence of turns, of which any number of threads takes the next.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/layout/branch_and_bound.h"
#include "planner/layout/placement_tree.h"
#include "planner/layout/search.h"
#include "planner/layout/sections.h"

namespace memopt::layout {

struct Verdict {
  Progress progress = Progress::kUnfinished;
  std::vector<std::int64_t> offsets;  // if solved; in units, by the numbers of Sections
  std::uint64_t work = 0;             // nodes that were given out, in all
};

// Whether the buffers fit into `capacity` units. Can be taken up again with more work. Without a time limit and a
// cancellation the verdict depends neither on the number of threads nor on the clock. Not thread-safe itself.
class Turns {
 public:
  // `sections` must outlive it.
  Turns(const Sections& sections, std::int64_t capacity, std::uint64_t seed, const Pruning& pruning);
  ~Turns();

  // `limits.work` comes on top of what was allowed before; its seed is not used.
  Verdict go_on(const Limits& limits);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace memopt::layout
