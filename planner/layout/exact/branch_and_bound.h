// Exact search: depth-first branch and bound over canonical solutions, with section inference, dominance and
// decomposition as in MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
// Learning", ASPLOS 2023). Several strategies run side by side.
#pragma once

#include <cstdint>
#include <memory>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

// MiniMalloc's pruning rules by its own names, and nogoods.
struct Pruning {
  bool canonical_only = true;         // only solutions in which nothing could be moved down
  bool section_inference = true;      // the floor and the bytes not placed yet must fit into each section of time
  bool check_dominance = true;        // no hole that another buffer could fill without harm
  bool dynamic_decomposition = true;  // parts of time that no unplaced buffer connects are searched apart
  bool nogoods = true;                // what was refuted once is refuted for higher floors, too
};

// A solution of at most `capacity`, or the proof that there is none, or neither if the limits were met first.
Outcome place_within(const Problem& problem, std::uint64_t capacity, const Limits& limits, const Pruning& pruning = {});

// A search for the least height that can be resumed: what was found out about a height is kept. Looks between the
// proven bound and the incumbent, with an effort that grows. Not thread-safe itself.
class HeightMinimizer {
 public:
  // `problem` must outlive it.
  HeightMinimizer(const Problem& problem, std::uint64_t seed, const Pruning& pruning = {});
  ~HeightMinimizer();
  HeightMinimizer(const HeightMinimizer&) = delete;
  HeightMinimizer& operator=(const HeightMinimizer&) = delete;

  // False: the problem is too large for it, and nothing else may be called.
  bool supported() const { return state_ != nullptr; }

  // Looks for less than `incumbent`, the height of the caller's best solution (the largest number if there is none),
  // with `limits.work` more; the seed of the limits is not used. The best that it found so far, and the bound that is
  // proven.
  Outcome minimize(std::uint64_t incumbent, const Limits& limits, const OnBetter& on_better = {});

  // Looks only for a solution of at most `capacity`, with the same limits.
  Outcome place_within(std::uint64_t capacity, const Limits& limits);

  // Work of all calls; what was granted and is kept for later counts.
  std::uint64_t spent() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// The smallest height (within the capacity of the problem, if it has one) and the proof that nothing is smaller, as far
// as the limits let it come.
Outcome minimize_height(const Problem& problem, const Limits& limits, const OnBetter& on_better = {},
                        const Pruning& pruning = {});

}  // namespace memopt::layout
