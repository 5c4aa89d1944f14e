// Warm starts after changes: valid results, with most buffers at their former offsets.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/training_like.h"

namespace memopt::layout {
namespace {

Limits work(std::uint64_t steps) { return {.work = steps}; }

TEST(SolveAgain, KeepsWhatCanStay) {
  Problem problem;
  for (std::uint64_t i = 0; i < 10; ++i) problem.add(10, Interval{i, i + 3});
  const std::vector<std::uint64_t> before = solve(problem, {}).solution.offsets;
  EXPECT_EQ(solve_again(problem, before, {}).solution.offsets, before);
  // A new one that fits nowhere below, and one that grew: only these two move.
  problem.add(30, Interval{4, 6});
  problem.buffers[7].bytes = 31;
  std::vector<std::uint64_t> previous = before;
  previous.push_back(kAnywhere);
  const Outcome outcome = solve_again(problem, previous, {});
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
  EXPECT_EQ(outcome.solution.height, outcome.lower_bound);
}

TEST(SolveAgain, IsValidAfterAnyChange) {
  std::mt19937_64 random(17);
  int moved = 0;
  int stayed = 0;
  for (int round = 0; round < 3000; ++round) {
    Problem problem = brute_force::random_problem(random, {.buffers = 12, .times = 12});
    std::vector<std::uint64_t> previous = solve(problem, work(1000)).solution.offsets;
    // Another change every time: sizes, alignments, new buffers, arbitrary previous offsets.
    for (Buffer& buffer : problem.buffers) {
      if (random() % 4 == 0 && buffer.fixed == kAnywhere) buffer.bytes = 1 + random() % 6;
      if (random() % 9 == 0) buffer.alignment = 1 + random() % 3;
    }
    for (std::uint64_t& offset : previous) {
      if (random() % 6 == 0) offset = random() % 2 == 0 ? kAnywhere : random() % 12;
    }
    const Outcome outcome = solve_again(problem, previous, {});
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
    for (std::size_t i = 0; i < previous.size(); ++i) {
      (outcome.solution.offsets[i] == previous[i] ? stayed : moved) += 1;
    }
  }
  EXPECT_GT(stayed, 2 * moved);
}

TEST(SolveAgain, HoldsTheCapacity) {
  std::mt19937_64 random(18);
  for (int round = 0; round < 500; ++round) {
    Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const std::vector<std::uint64_t> previous(problem.buffers.size(), kAnywhere);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    problem.capacity = smallest - random() % 2;
    const Outcome outcome = solve_again(problem, previous, work(20000));
    if (*problem.capacity < smallest) {
      ASSERT_FALSE(outcome.found(problem.buffers.size()));
    } else if (outcome.found(problem.buffers.size())) {
      ASSERT_EQ(validate(problem, outcome.solution), std::nullopt);
    }
  }
}

// Every change costs at most the documented part of the height, and mostly much less.
TEST(SolveAgain, MovesLittleWhereLittleChanges) {
  std::mt19937_64 random(19);
  int within = 0;  // the height up to which no others move
  for (const bool two_rounds : {false, true}) {
    TrainingShape shape;
    shape.buffers = 2000;
    shape.two_rounds = two_rounds;
    const Problem before = training_like(shape, 5);
    const Solution solution = solve(before, work(50'000)).solution;
    for (int round = 0; round < 60; ++round) {
      Problem problem = before;
      std::vector<std::uint64_t> previous = solution.offsets;
      Buffer& changed = problem.buffers[random() % problem.buffers.size()];
      switch (round % 3) {
        case 0:
          changed.bytes += 512;
          break;
        case 1:
          changed.bytes -= changed.bytes / 3;
          break;
        case 2:
          problem.add(4096, problem.intervals[changed.first]);
          previous.push_back(kAnywhere);
          break;
      }
      const Outcome outcome = solve_again(problem, previous, {});
      ASSERT_EQ(validate(problem, outcome.solution), std::nullopt);
      std::size_t moved = 0;
      for (std::size_t i = 0; i < solution.offsets.size(); ++i) {
        moved += outcome.solution.offsets[i] != previous[i];
      }
      // A buffer that shrinks moves no other; one that grows pushes at most those above it.
      EXPECT_LE(moved, round % 3 == 1 ? 0 : problem.buffers.size() / 2);
      const std::uint64_t goal = std::max(solution.height, outcome.lower_bound);
      EXPECT_LE(outcome.solution.height, goal + goal / 128);
      within += outcome.solution.height <=
                std::max(solution.height + solution.height / 4096, outcome.lower_bound + outcome.lower_bound / 1024);
    }
  }
  EXPECT_GE(within, 100);
}

TEST(SolveAgain, AvoidsFixedBuffers) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 300; ++round) {
    Problem problem = brute_force::random_problem(random, {.buffers = 60, .bytes = 30, .times = 40});
    std::vector<std::uint64_t> previous = solve(problem, work(3000)).solution.offsets;
    for (int i = 0; i < 3; ++i) {
      Buffer& buffer = problem.buffers[random() % problem.buffers.size()];
      if (buffer.fixed == kAnywhere) buffer.bytes += 1 + random() % 20;
    }
    const Outcome outcome = solve_again(problem, previous, {});
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
    ASSERT_GE(outcome.solution.height, outcome.lower_bound);
  }
}

}  // namespace
}  // namespace memopt::layout
