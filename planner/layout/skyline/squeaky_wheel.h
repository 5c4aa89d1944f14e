// Internal to planner/layout: squeaky wheel optimisation (Joslin and Clements, "Squeaky Wheel Optimization", JAIR 10,
// 1999): constructs skylines again and again, and blames what did not fit, so that it is placed earlier the next time.
//
// Each run has a height to stay below. It ends at the first section in which the unplaced buffers cannot fit; the
// unplaced buffers of that section are blamed: their priority grows by a random amount. Where this differs from the
// paper: blame is found before the solution is complete, so that a failing run costs a part of a successful one.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/random.h"
#include "planner/layout/skyline/priorities.h"
#include "planner/layout/skyline/skyline.h"

namespace memopt::layout {

class SqueakyWheel {
 public:
  // The problem and its sections must outlive it.
  SqueakyWheel(const Problem& problem, const Sections& sections, Weights weights, std::uint64_t seed);

  // Looks for solutions smaller than `best`, down to `goal`, and calls `found` with each, until the goal is met or the
  // allowance ends. The next call resumes the search. `skyline` is its working memory.
  template <class Found>
  void improve(Skyline& skyline, std::uint64_t best, std::uint64_t goal, Allowance& allowance, Found&& found) {
    while (best > goal && !allowance.over()) {
      Solution solution;
      if (!attempt(skyline, best, goal, allowance, solution)) continue;
      best = solution.height;
      found(std::move(solution));
    }
  }

 private:
  bool attempt(Skyline& skyline, std::uint64_t best, std::uint64_t goal, Allowance& allowance, Solution& solution);

  const Problem& problem_;
  const Sections& sections_;
  Random random_;
  Weights weights_;
  std::vector<double> keys_;  // empty until the first call
  std::vector<std::uint32_t> priorities_;
  double gap_fraction_;  // which part of the gap between the best height and the goal the next run tries to close
  unsigned failures_ = 0;
};

}  // namespace memopt::layout
