// Exact search. Bottom-up over canonical solutions, with section inference, dominance and decomposition as in
// MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023); each rule of pruning is a flag. Preorders run side by side.
#pragma once

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

// The smallest height (within the capacity of the problem, if it has one) and the proof that nothing is smaller, as far
// as the limits let it come: looks between the load bound and what was found, with an effort that grows.
Outcome fit_least(const Problem& problem, const Limits& limits, const OnBetter& on_better = {},
                  const Pruning& pruning = {});

}  // namespace memopt::layout
