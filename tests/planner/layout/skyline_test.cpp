// The skyline, its parts and the wheel that turns it: against brute force on tiny problems with all extensions, and
// against what is known of a few.
#include "planner/layout/skyline.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "planner/layout/bounds.h"
#include "planner/layout/offset_lines.h"
#include "planner/layout/priorities.h"
#include "planner/layout/squeaky_wheel.h"
#include "planner/layout/validation.h"
#include "tests/planner/layout/brute_force.h"

namespace memopt::layout {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::vector<std::uint32_t> shuffled(std::size_t count, std::mt19937_64& random) {
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] = i + 1;
  std::shuffle(numbers.begin(), numbers.end(), random);
  return numbers;
}

TEST(Timeline, TwoIntervalsShareASectionIfTheyOverlap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    Problem problem = brute_force::random_problem(random, {.buffers = 8, .times = 12});
    // Sparse times, the same order.
    if (round % 2 == 1) {
      for (Interval& interval : problem.intervals) {
        interval = {interval.begin * interval.begin * 1000, interval.end * interval.end * 1000};
      }
    }
    const Timeline timeline(problem);
    for (std::size_t i = 0; i < problem.intervals.size(); ++i) {
      for (std::size_t j = 0; j < problem.intervals.size(); ++j) {
        const Interval a = problem.intervals[i];
        const Interval b = problem.intervals[j];
        const Span x = timeline.spans[i];
        const Span y = timeline.spans[j];
        ASSERT_EQ(a.begin < b.end && b.begin < a.end, x.lo < y.hi && y.lo < x.hi) << brute_force::text(problem);
      }
    }
    ASSERT_EQ(timeline.peak, brute_force::peak_load(problem));
  }
}

TEST(Skyline, EveryOrderGivesASolutionThatHolds) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 9, .times = 12});
    const Timeline timeline(problem);
    Skyline skyline(problem, timeline);
    const Watch watch({});
    Allowance allowance(watch);
    Solution solution;
    const auto priorities = shuffled(problem.buffers.size(), random);
    ASSERT_TRUE(skyline.run(priorities, kNever, allowance, solution)) << brute_force::text(problem);
    ASSERT_EQ(validate(problem, solution), std::nullopt) << brute_force::text(problem);
    // The same again with a bound: what stays below must be found, and nothing else.
    Solution again;
    ASSERT_TRUE(skyline.run(priorities, solution.height + 1, allowance, again)) << brute_force::text(problem);
    ASSERT_EQ(again.offsets, solution.offsets);
    ASSERT_FALSE(skyline.run(priorities, solution.height, allowance, again)) << brute_force::text(problem);
    ASSERT_TRUE(again.offsets.empty());
  }
}

TEST(Skyline, UsesTheRoomBelowWhatIsPlaced) {
  Problem problem;
  problem.add(4, Interval{0, 10}, 1, 6);  // floats
  problem.add(6, Interval{0, 10});
  problem.add(2, Interval{0, 5});
  const Timeline timeline(problem);
  Skyline skyline(problem, timeline);
  const Watch watch({});
  Allowance allowance(watch);
  Solution solution;
  const std::uint32_t priorities[] = {3, 2, 1};
  ASSERT_TRUE(skyline.run(priorities, kNever, allowance, solution));
  EXPECT_EQ(solution.offsets, (std::vector<std::uint64_t>{6, 0, 10}));
}

TEST(Skyline, WhatCrossesTheEndOfAnIterationIsOneArc) {
  // Gradients: each is needed over the end, and other buffers in between fit exactly above those that are still there.
  Problem problem;
  const std::vector<Interval> wide{{0, 3}, {5, 10}};
  const std::vector<Interval> narrow{{0, 1}, {7, 10}};
  problem.add(4, wide);
  problem.add(3, narrow);
  problem.add(4, Interval{3, 5});
  problem.add(3, Interval{1, 7});
  const Timeline timeline(problem);
  EXPECT_TRUE(timeline.circle);
  const Outcome outcome = offset_lines(problem, {});
  EXPECT_EQ(outcome.solution.height, 7);
  EXPECT_TRUE(outcome.optimal);
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
}

TEST(OffsetLines, AreThePapers) {
  // The longest first; the lowest line; lifted where nothing fits.
  Problem problem;
  problem.add(2, Interval{0, 4});
  problem.add(1, Interval{0, 10});
  problem.add(3, Interval{4, 10});
  problem.add(5, Interval{2, 6});
  const Outcome outcome = offset_lines(problem, {});
  EXPECT_EQ(outcome.solution.offsets, (std::vector<std::uint64_t>{1, 0, 1, 4}));
  EXPECT_EQ(outcome.solution.height, 9);
}

TEST(Bounds, AreNeverAboveTheSmallestHeight) {
  std::mt19937_64 random(3);
  int above_load = 0;
  for (int round = 0; round < 1500; ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const std::uint64_t bound = lower_bound_of(problem, Timeline(problem));
    ASSERT_LE(bound, brute_force::smallest_height(problem)) << brute_force::text(problem);
    ASSERT_GE(bound, load_bound(problem));
    above_load += bound > load_bound(problem);
  }
  EXPECT_GT(above_load, 0);
}

TEST(SqueakyWheel, FindsTheSmallestOfMostTinyProblems) {
  std::mt19937_64 random(4);
  int missed = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = brute_force::random_problem(random, {.fixed = false});
    const Timeline timeline(problem);
    Skyline skyline(problem, timeline);
    SqueakyWheel wheel(problem, timeline, {1, 1}, 7);
    const Watch watch({});
    Allowance allowance(watch, 5000);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    std::uint64_t best = 1000;
    wheel.turn(skyline, best, smallest, allowance, [&](const Solution& solution) {
      ASSERT_EQ(validate(problem, solution), std::nullopt) << brute_force::text(problem);
      ASSERT_LT(solution.height, best);
      best = solution.height;
    });
    missed += best > smallest;
  }
  EXPECT_LE(missed, 20);
}

}  // namespace
}  // namespace memopt::layout
