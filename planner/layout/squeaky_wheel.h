// Internal to the room: skylines over and over, and whoever was left over comes earlier the next time (squeaky wheel
// optimisation: Joslin and Clements, "Squeaky Wheel Optimization", JAIR 10, 1999).
//
// Each run has a height to stay below. The run ends at the first section in which what is still to come cannot fit; the
// buffers that are still to come there gain in priority, by a random amount. Where this differs from the paper: blame
// is found before the solution is complete, so that a failing run costs a part of one that succeeds.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/layout/priorities.h"
#include "planner/layout/problem.h"
#include "planner/layout/skyline.h"
#include "planner/layout/watch.h"

namespace memopt::layout {

class SqueakyWheel {
 public:
  // The problem and its timeline must outlive it.
  SqueakyWheel(const Problem& problem, const Timeline& timeline, Weights weights, std::uint64_t seed);

  // Goes on looking for a solution smaller than `best`, down to `goal`, and calls `found` with each, until the goal is
  // met or the allowance ends. Where it ended it goes on with the next call. `skyline` is a place to work in.
  template <class Found>
  void turn(Skyline& skyline, std::uint64_t best, std::uint64_t goal, Allowance& allowance, Found&& found) {
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
  const Timeline& timeline_;
  Random random_;
  Weights weights_;
  std::vector<double> keys_;  // empty until the first turn
  std::vector<std::uint32_t> priorities_;
  double ambition_;  // which part of the way from the best height to the goal is tried at once
  unsigned failures_ = 0;
};

}  // namespace memopt::layout
