// The portfolio: results that hold, limits that are kept, and the same result whatever the number of threads.
#include "planner/layout/solve.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "planner/layout/offset_lines.h"
#include "planner/layout/validation.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/training_like.h"

namespace memopt::layout {
namespace {

Limits work(std::uint64_t steps, unsigned threads = 1) {
  Limits limits;
  limits.work = steps;
  limits.threads = threads;
  return limits;
}

TEST(Solve, IsHeldAgainstBruteForce) {
  std::mt19937_64 random(11);
  int missed = 0;
  for (int round = 0; round < 1000; ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const Outcome outcome = solve(problem, work(3000));
    ASSERT_TRUE(outcome.found(problem.buffers.size()));
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    ASSERT_LE(outcome.lower_bound, smallest) << brute_force::text(problem);
    ASSERT_TRUE(!outcome.optimal || outcome.solution.height == smallest) << brute_force::text(problem);
    missed += outcome.solution.height > smallest;
  }
  EXPECT_LE(missed, 50);
}

TEST(Solve, IsTheSameForAnyNumberOfThreads) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 20; ++round) {
    const Problem problem =
        brute_force::random_problem(random, {.buffers = 100, .bytes = 50, .times = 60, .fixed = false});
    const Outcome one = solve(problem, work(20000));
    for (const unsigned threads : {2u, 3u, 5u}) {
      const Outcome many = solve(problem, work(20000, threads));
      ASSERT_EQ(one.solution.offsets, many.solution.offsets);
      ASSERT_EQ(one.solver, many.solver);
    }
  }
}

TEST(Solve, ReportsEachBetterOne) {
  std::mt19937_64 random(13);
  const Problem problem = brute_force::random_problem(random, {.buffers = 150, .bytes = 60, .times = 80});
  std::uint64_t last = ~std::uint64_t{0};
  const Outcome outcome = solve(problem, work(30000, 2), [&](const Outcome& better) {
    EXPECT_EQ(validate(problem, better.solution), std::nullopt);
    EXPECT_LT(better.solution.height, last);
    last = better.solution.height;
  });
  EXPECT_EQ(outcome.solution.height, last);
}

TEST(Solve, TrainingIterationsComeCloseToTheirLoad) {
  for (const bool two_rounds : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      TrainingShape shape;
      shape.buffers = 900;
      shape.two_rounds = two_rounds;
      shape.blocks_of_512 = seed != 3;
      const Problem problem = training_like(shape, seed);
      ASSERT_EQ(find_fault(problem), std::nullopt);
      const Outcome outcome = solve(problem, work(100'000, 2));
      ASSERT_EQ(validate(problem, outcome.solution), std::nullopt);
      // With two rounds one of these ends 0.5 % above its load; whether less is possible is not known.
      const double ratio = static_cast<double>(outcome.solution.height) / static_cast<double>(load_bound(problem));
      EXPECT_LE(ratio, two_rounds ? 1.01 : 1.001);
    }
  }
}

TEST(Solve, StopsAtTheCapacity) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 300; ++round) {
    Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    problem.capacity = smallest - 1 + random() % 3;
    const Outcome outcome = solve(problem, work(3000, 2));
    if (*problem.capacity < smallest) {
      ASSERT_FALSE(outcome.found(problem.buffers.size()));
    } else {
      ASSERT_FALSE(outcome.infeasible) << brute_force::text(problem);
      if (outcome.found(problem.buffers.size())) {
        ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
      }
    }
  }
}

TEST(Solve, HasASolutionWhateverTheLimits) {
  std::mt19937_64 random(15);
  const Problem problem = brute_force::random_problem(random, {.buffers = 2000, .bytes = 100, .times = 3000});
  Limits none;
  none.time = std::chrono::nanoseconds(0);
  EXPECT_EQ(validate(problem, solve(problem, none).solution), std::nullopt);
  std::atomic<bool> cancelled{true};
  Limits stopped;
  stopped.cancelled = &cancelled;
  EXPECT_EQ(validate(problem, solve(problem, stopped).solution), std::nullopt);
  EXPECT_EQ(validate(problem, solve(problem, work(0)).solution), std::nullopt);
  // However little work is allowed, but for none, it is enough for one skyline.
  const Outcome little = solve(problem, work(1));
  EXPECT_EQ(validate(problem, little.solution), std::nullopt);
  EXPECT_EQ(little.solver, "skyline");
}

TEST(Solve, OfNothingIsNothing) {
  const Outcome outcome = solve({}, {});
  EXPECT_EQ(outcome.solution.height, 0);
  EXPECT_TRUE(outcome.optimal);
}

TEST(Solve, IsNeverWorseThanThePapers) {
  std::mt19937_64 random(16);
  for (int round = 0; round < 20; ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 100, .bytes = 100, .times = 100});
    const std::uint64_t height = solve(problem, work(20000)).solution.height;
    EXPECT_LE(height, offset_lines(problem, {}).solution.height);
  }
}

}  // namespace
}  // namespace memopt::layout
