#include "planner/layout/problem/sections.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/planner/layout/brute_force.h"

namespace memopt::layout {
namespace {

TEST(Sections, TwoIntervalsShareASectionIfTheyOverlap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    Problem problem = brute_force::random_problem(random, {.buffers = 8, .times = 12});
    // Sparse times, the same order.
    if (round % 2 == 1) {
      for (Interval& interval : problem.intervals) {
        interval = {interval.begin * interval.begin * 1000, interval.end * interval.end * 1000};
      }
    }
    const Sections sections(problem);
    for (std::size_t i = 0; i < problem.intervals.size(); ++i) {
      for (std::size_t j = 0; j < problem.intervals.size(); ++j) {
        const Interval a = problem.intervals[i];
        const Interval b = problem.intervals[j];
        const SectionRange x = sections.ranges[i];
        const SectionRange y = sections.ranges[j];
        ASSERT_EQ(a.begin < b.end && b.begin < a.end, x.lo < y.hi && y.lo < x.hi) << brute_force::text(problem);
      }
    }
    ASSERT_EQ(sections.peak, brute_force::peak_load(problem));
  }
}

}  // namespace
}  // namespace memopt::layout
