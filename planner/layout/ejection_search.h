// Internal to the room: a solution below a target, by taking out what is in the way.
//
// A solution that is too high loses what reaches above the target. What was lost is put back one by one: each buffer
// goes where the least has to be taken out for it, and what is taken out has to be put back in its turn. A buffer that
// could not be put back without harm weighs more from then on, so that others make way for it (guided ejection search:
// Nagata and Braeysy, "A powerful route minimization heuristic for the vehicle routing problem with time windows",
// Operations Research Letters 37, 2009).
//
// Nothing has a fixed offset meanwhile: of two buffers that live at the same time it is known which is the lower, and
// with that the least and the largest offset of each. A buffer at some offset leaves in place those that can be below
// it and those that can be above it; so each that lives at the same time forbids one interval of offsets, and the best
// offset is found by sweeping over the ends of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"
#include "planner/layout/timeline.h"
#include "planner/layout/watch.h"

namespace memopt::layout {

struct EjectionRules {
  bool by_area = false;        // a buffer weighs its bytes times its sections; else its bytes
  bool largest_first = false;  // the heaviest is put back first; else any
  double ambition = 0.5;       // the part of the way from the best height to the goal that is tried first
  unsigned patience = 5000;    // steps before less is tried
};

// They fail on different problems: some come far in great steps, some go on where these find nothing.
inline constexpr EjectionRules kEjectionRules[] = {
    {.by_area = true, .largest_first = true},
    {.largest_first = true, .ambition = 0.1, .patience = 300},
    {.by_area = true, .largest_first = true, .ambition = 0.1, .patience = 300},
    {.by_area = true, .largest_first = true, .ambition = 0.1, .patience = 300}};

// One for a thread. The result depends on seed and work alone.
class EjectionSearch {
 public:
  // Both must outlive it. O(n); each buffer put back takes O(n log n).
  static std::unique_ptr<EjectionSearch> make(const Problem& problem, const Timeline& timeline,
                                              const EjectionRules& rules, std::uint64_t seed);
  virtual ~EjectionSearch() = default;

  // Goes on looking for solutions below the height of `best`, down to `goal` (at least the lower bound), and calls
  // `found` with each, until the goal is met or the allowance ends. Where it ended it goes on with the next call, but
  // begins anew from `best` once that is below the height it looks for.
  virtual void turn(const Solution& best, std::uint64_t goal, Allowance& allowance,
                    const std::function<void(Solution)>& found) = 0;
};

// A solver of its own: from offset lines on, by the rules that the seed chooses, until the load is met (or the
// capacity) or the limits end. One thread.
Outcome ejection_search(const Problem& problem, const Limits& limits);

}  // namespace memopt::layout
