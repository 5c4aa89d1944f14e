// The skyline and squeaky wheel optimisation: on tiny problems with all extensions against exhaustive search, and on a
// few whose answers are known.
#include "planner/layout/skyline/skyline.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "planner/layout/problem/validation.h"
#include "planner/layout/published/offset_lines.h"
#include "planner/layout/skyline/priorities.h"
#include "planner/layout/skyline/squeaky_wheel.h"
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

TEST(Skyline, EveryOrderGivesAValidSolution) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 9, .times = 12});
    const Sections sections(problem);
    Skyline skyline(problem, sections);
    const Deadline deadline({});
    Allowance allowance(deadline);
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

TEST(Skyline, UsesTheSpaceBelowPlacedBuffers) {
  Problem problem;
  problem.add(4, Interval{0, 10}, 1, 6);  // floats
  problem.add(6, Interval{0, 10});
  problem.add(2, Interval{0, 5});
  const Sections sections(problem);
  Skyline skyline(problem, sections);
  const Deadline deadline({});
  Allowance allowance(deadline);
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
  const Sections sections(problem);
  EXPECT_TRUE(sections.circular);
  const Outcome outcome = offset_lines(problem, {});
  EXPECT_EQ(outcome.solution.height, 7);
  EXPECT_TRUE(outcome.optimal);
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
}

TEST(SqueakyWheel, FindsTheSmallestOfMostTinyProblems) {
  std::mt19937_64 random(4);
  int missed = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = brute_force::random_problem(random, {.fixed = false});
    const Sections sections(problem);
    Skyline skyline(problem, sections);
    SqueakyWheel wheel(problem, sections, {1, 1}, 7);
    const Deadline deadline({});
    Allowance allowance(deadline, 5000);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    std::uint64_t best = 1000;
    wheel.improve(skyline, best, smallest, allowance, [&](const Solution& solution) {
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
