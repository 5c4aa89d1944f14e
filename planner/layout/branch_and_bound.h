// Exact search. Bottom-up over canonical solutions, with section inference, dominance and decomposition as in
// MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023); each rule of pruning is a flag. Preorders run side by side.
#pragma once

#include <cstdint>
#include <memory>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

struct Pruning {
  bool canonical = true;      // only solutions in which nothing could be moved down
  bool sections = true;       // floor plus what is still to come must fit into every section of time
  bool dominance = true;      // no hole that another buffer could fill without harm
  bool decomposition = true;  // parts of time that no open buffer connects are searched apart
  bool memory = true;         // what was refuted once is refuted for higher floors, too
};

// A solution of at most `capacity`, or the proof that there is none, or neither if the limits were met first.
Outcome fit_into(const Problem& problem, std::uint64_t capacity, const Limits& limits, const Pruning& pruning = {});

// The search for the least height, to be gone on with: what was found out about a height is kept. Looks between the
// proven bound and what was reached, with an effort that grows. Not thread-safe itself.
class LeastFit {
 public:
  // `problem` must outlive it.
  LeastFit(const Problem& problem, std::uint64_t seed, const Pruning& pruning = {});
  ~LeastFit();
  LeastFit(const LeastFit&) = delete;
  LeastFit& operator=(const LeastFit&) = delete;

  // False: the problem is too large for it, and nothing else may be called.
  bool possible() const { return state_ != nullptr; }

  // Looks for less than `reached`, the height of a solution that somebody has (the largest number: nobody has), with
  // `limits.work` more; their seed is not used. The best that it found so far, and the bound that is proven.
  Outcome go_on(std::uint64_t reached, const Limits& limits, const OnBetter& on_better = {});

  // Looks for a solution of at most `capacity` only, likewise.
  Outcome fit(std::uint64_t capacity, const Limits& limits);

  // Work, by all of these; what was granted and is kept for later counts.
  std::uint64_t spent() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// The smallest height (within the capacity of the problem, if it has one) and the proof that nothing is smaller, as far
// as the limits let it come.
Outcome fit_least(const Problem& problem, const Limits& limits, const OnBetter& on_better = {},
                  const Pruning& pruning = {});

}  // namespace memopt::layout
