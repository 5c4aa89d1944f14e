// Internal to planner/layout: a solution below a target height, by ejecting buffers that are in the way.
//
// Guided ejection search (Nagata and Braeysy, "A powerful route minimization heuristic for the vehicle routing problem
// with time windows", Operations Research Letters 37, 2009), with buffers for customers and the target height for the
// number of routes. Buffers of a solution that reach above the target go to the ejection pool. They are reinserted one
// by one: each where the buffers that have to be ejected for it have the least sum of penalties; these go to the pool
// in turn. The penalty of a buffer grows whenever it cannot be inserted without an ejection.
//
// No offset is fixed during the search: of two buffers that overlap in time it is known which is the lower, and from
// that the lowest and the highest possible offset of each. A buffer at some offset need not eject those that can be
// below it and those that can be above it; so each neighbour forbids one interval of offsets, and the best offset is
// found by a sweep over the ends of these intervals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

struct EjectionRules {
  bool by_area = false;        // a buffer weighs its bytes times its sections; else its bytes
  bool largest_first = false;  // the heaviest is reinserted first; else a random one
  double gap_fraction = 0.5;   // part of the gap between best height and goal that is tried first
  unsigned patience = 5000;    // steps before a smaller part is tried
};

// They fail on different problems: some make large steps, some still find solutions where these do not.
inline constexpr EjectionRules kEjectionRules[] = {
    {.by_area = true, .largest_first = true},
    {.largest_first = true, .gap_fraction = 0.1, .patience = 300},
    {.by_area = true, .largest_first = true, .gap_fraction = 0.1, .patience = 300},
    {.by_area = true, .largest_first = true, .gap_fraction = 0.1, .patience = 300}};

// One for a thread. The result depends on seed and work alone.
class EjectionSearch {
 public:
  // Both must outlive it. O(n); each insertion takes O(n log n).
  static std::unique_ptr<EjectionSearch> make(const Problem& problem, const Sections& sections,
                                              const EjectionRules& rules, std::uint64_t seed);
  virtual ~EjectionSearch() = default;

  // Looks for solutions below the height of `best`, down to `goal` (at least the lower bound), and calls `found` with
  // each, until the goal is met or the allowance ends. The next call resumes the search, but restarts from `best` if
  // that is not above its target any more.
  virtual void improve(const Solution& best, std::uint64_t goal, Allowance& allowance,
                       const std::function<void(Solution)>& found) = 0;
};

// A solver of its own: starts from offset lines and uses the rules that the seed selects, until the load is met (or the
// capacity) or the limits end. One thread.
Outcome ejection_search(const Problem& problem, const Limits& limits);

}  // namespace memopt::layout
