// Exact search by several strategies side by side, with restarts (Luby, Sinclair, Zuckerman, "Optimal speedup of Las
// Vegas algorithms", Information Processing Letters 47, 1993): a sequence of slices of work, of which any number of
// threads takes the next.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/layout/exact/branch_and_bound.h"
#include "planner/layout/exact/placement_tree.h"
#include "planner/layout/exact/prepared_problem.h"
#include "planner/layout/problem/limits.h"

namespace memopt::layout {

struct Verdict {
  Progress progress = Progress::kUnfinished;
  std::vector<std::int64_t> offsets;  // if solved; in units, in the order of the prepared problem
  std::uint64_t work = 0;             // nodes that were granted, in all
};

// Whether the buffers fit into `capacity` units. Can be resumed with more work. Without a time limit and a cancellation
// the verdict depends neither on the number of threads nor on the clock. Not thread-safe itself.
class RestartedSearch {
 public:
  // `prepared` must outlive it.
  RestartedSearch(const PreparedProblem& prepared, std::int64_t capacity, std::uint64_t seed, const Pruning& pruning);
  ~RestartedSearch();

  // `limits.work` is added to what was allowed before; the seed of the limits is not used.
  Verdict resume(const Limits& limits);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace memopt::layout
