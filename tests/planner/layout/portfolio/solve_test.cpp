// The portfolio: results are valid, limits are kept, and the result does not depend on the number of threads.
#include "planner/layout/portfolio/solve.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "planner/layout/problem/validation.h"
#include "planner/layout/published/offset_lines.h"
#include "planner/layout/published/smart_pool.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/epochs.h"
#include "tests/planner/layout/random_lifetimes.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/layout/training_like.h"

namespace memopt::layout {
namespace {

Limits work(std::uint64_t steps, unsigned threads = 1) {
  Limits limits;
  limits.work = steps;
  limits.threads = threads;
  return limits;
}

// The planner's own limit (planner/iteration/iteration_plan.h) is more than enough to prove tiny problems optimal.
TEST(Solve, AgreesWithExhaustiveSearch) {
  std::mt19937_64 random(11);
  for (int round = 0; round < rounds(2000); ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const Outcome outcome = solve(problem, work(250'000));
    ASSERT_TRUE(outcome.found(problem.buffers.size()));
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    ASSERT_EQ(outcome.solution.height, smallest) << brute_force::text(problem);
    ASSERT_EQ(outcome.lower_bound, smallest) << brute_force::text(problem);
    ASSERT_TRUE(outcome.optimal) << brute_force::text(problem);
  }
}

// With too little work for a proof, no false claim is made.
TEST(Solve, ClaimsNothingThatBruteForceRefutes) {
  std::mt19937_64 random(11);
  int unproven = 0;
  for (int round = 0; round < rounds(1000); ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const Outcome outcome = solve(problem, work(100));
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    ASSERT_LE(outcome.lower_bound, smallest) << brute_force::text(problem);
    ASSERT_TRUE(!outcome.optimal || outcome.solution.height == smallest) << brute_force::text(problem);
    unproven += !outcome.optimal;
  }
  EXPECT_GT(unproven, 0);
}

TEST(Solve, IsTheSameForAnyNumberOfThreads) {
  std::mt19937_64 random(12);
  for (int round = 0; round < (kSanitized ? 6 : 20); ++round) {
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
      const Outcome outcome = solve(problem, work(kSanitized ? 100'000 : 1'000'000, 2));
      ASSERT_EQ(validate(problem, outcome.solution), std::nullopt);
      // With two rounds one of these ends 0.54 % above its load, with a tenth of the work 0.85 %. Other seeds of the
      // search come to 0.02 %.
      const double ratio = static_cast<double>(outcome.solution.height) / static_cast<double>(load_bound(problem));
      RecordProperty((two_rounds ? "two_rounds_" : "one_round_") + std::to_string(seed), std::to_string(ratio));
      EXPECT_LE(ratio, !two_rounds ? 1.001 : kSanitized ? 1.009 : 1.006);
    }
  }
}

TEST(Solve, StopsAtTheCapacity) {
  std::mt19937_64 random(14);
  for (int round = 0; round < rounds(2000); ++round) {
    Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    problem.capacity = smallest - 1 + random() % 3;
    const Outcome outcome = solve(problem, work(250'000, 2));
    const bool feasible = *problem.capacity >= smallest;
    ASSERT_EQ(outcome.found(problem.buffers.size()), feasible) << brute_force::text(problem);
    ASSERT_EQ(outcome.infeasible, !feasible) << brute_force::text(problem);
    if (feasible) {
      ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
    }
  }
}

TEST(Solve, HasASolutionUnderAnyLimits) {
  std::mt19937_64 random(15);
  const Problem problem = brute_force::random_problem(random, {.buffers = 2000, .bytes = 100, .times = 3000});
  Limits none;
  none.time = std::chrono::nanoseconds(0);
  EXPECT_EQ(validate(problem, solve(problem, none).solution), std::nullopt);
  std::atomic<bool> cancelled{true};
  Limits stopped;
  stopped.cancelled = &cancelled;
  EXPECT_EQ(validate(problem, solve(problem, stopped).solution), std::nullopt);
  EXPECT_EQ(solve(problem, stopped).solver, kFirstLayout);
  EXPECT_EQ(validate(problem, solve(problem, work(0)).solution), std::nullopt);
  // Any work at all is enough for one skyline.
  const Outcome little = solve(problem, work(1));
  EXPECT_EQ(validate(problem, little.solution), std::nullopt);
  EXPECT_EQ(little.solver, "skyline");
}

// All of them stacked is twice the load.
TEST(Solve, IsNearTheLoadThoughItsTimeIsUp) {
  const Problem problem = random_lifetimes(20'000, 17);
  Limits none;
  none.time = std::chrono::nanoseconds(0);
  const Outcome outcome = solve(problem, none);
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
  EXPECT_EQ(outcome.solver, kFirstLayout);
  EXPECT_LT(double(outcome.solution.height), 1.06 * double(outcome.lower_bound));
}

// An epoch of twenty steps is as small as one of them.
TEST(Solve, AnEpochIsLaidOutAsItsStep) {
  for (int seed = 1; seed <= 4; ++seed) {
    TrainingShape shape;
    shape.buffers = kSanitized ? 100 : 1000;
    const Problem problem = problem_of(epoch_of(training_like(shape, seed)), 20);
    const Outcome outcome = solve(problem, work(20 * problem.buffers.size()));
    EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
    EXPECT_EQ(outcome.solver, "repetition");
    EXPECT_LE(double(outcome.solution.height), 1.0001 * double(outcome.lower_bound)) << "seed " << seed;
  }
}

TEST(Solve, OfNothingIsNothing) {
  const Outcome outcome = solve({}, {});
  EXPECT_EQ(outcome.solution.height, 0);
  EXPECT_TRUE(outcome.optimal);
}

// With the number of steps that the header requires. Counts the runs in which a paper's result is above the bound.
void check_against_papers(const Problem& problem, int& beyond_the_bound) {
  const std::uint64_t n = problem.buffers.size();
  const Outcome outcome = solve(problem, work(n * (200 + n / 256)));
  ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
  for (const Outcome& paper :
       {smart_pool_best_fit(problem, {}), smart_pool_first_fit(problem, {}), offset_lines(problem, {})}) {
    ASSERT_LE(outcome.solution.height, paper.solution.height) << paper.solver << "\n" << brute_force::text(problem);
    beyond_the_bound += paper.solution.height > outcome.lower_bound;
  }
}

TEST(Solve, IsNeverWorseThanThePapers) {
  std::mt19937_64 random(16);
  int beyond_the_bound = 0;
  for (int round = 0; round < rounds(600); ++round) {
    const brute_force::Kind kind{.buffers = 2 + random() % 250,
                                 .bytes = 1 + random() % 500,
                                 .times = 3 + random() % 200,
                                 .several = random() % 2 == 0,
                                 .aligned = random() % 2 == 0,
                                 .fixed = random() % 2 == 0};
    ASSERT_NO_FATAL_FAILURE(check_against_papers(brute_force::random_problem(random, kind), beyond_the_bound));
  }
  EXPECT_GT(beyond_the_bound, rounds(300));
}

// Above 2,000 buffers SmartPool is run later.
TEST(Solve, IsNeverWorseThanThePapersOnLargeProblems) {
  std::mt19937_64 random(17);
  int beyond_the_bound = 0;
  for (int round = 0; round < (kSanitized ? 2 : 6); ++round) {
    Problem problem;
    // Short lives and sizes that differ by orders of magnitude.
    for (std::uint64_t i = 0; i < 2500; ++i) {
      problem.add(1 + (random() % 4096 >> random() % 12), Interval{i, i + 1 + random() % (1 + round * 40)});
    }
    ASSERT_NO_FATAL_FAILURE(check_against_papers(problem, beyond_the_bound));
    TrainingShape shape;
    shape.buffers = 3500;
    shape.two_rounds = round % 2 == 1;
    shape.blocks_of_512 = false;
    ASSERT_NO_FATAL_FAILURE(check_against_papers(training_like(shape, round), beyond_the_bound));
  }
  EXPECT_GT(beyond_the_bound, kSanitized ? 3 : 10);
}

// Many copies, one after the other, of a few buffers that SmartPool places in less than any skyline: so many that no
// wheel repairs them all in the same time.
TEST(Solve, HasSmartPoolOnLargeProblems) {
  std::mt19937_64 random(18);
  Problem few;
  for (;;) {
    few = brute_force::random_problem(
        random, {.buffers = 16, .bytes = 40, .times = 12, .several = false, .aligned = false, .fixed = false});
    const std::uint64_t paper = smart_pool_best_fit(few, {}).solution.height;
    const std::uint64_t skylines = solve_by_heuristics(few, work(1)).solution.height;
    if (few.buffers.size() > 12 && paper < skylines && paper < offset_lines(few, {}).solution.height &&
        paper < offset_lines(few, {}, LineKey::kBytes).solution.height &&
        paper < offset_lines(few, {}, LineKey::kArea).solution.height) {
      break;
    }
  }
  Problem problem;
  for (std::uint64_t begin = 0; problem.buffers.size() < 4200; begin += 13) {
    problem.add(1 + random() % 40, Interval{begin + 12, begin + 13});  // or what repeats would be solved alone
    for (std::size_t i = 0; i < few.buffers.size(); ++i) {
      const Interval when = few.intervals_of(i).front();
      problem.add(few.buffers[i].bytes, Interval{begin + when.begin, begin + when.end});
    }
  }
  const std::uint64_t n = problem.buffers.size();
  const Outcome outcome = solve(problem, work(n * (200 + n / 256)));
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
  EXPECT_EQ(outcome.solver, "smartpool-best-fit");
  EXPECT_EQ(outcome.solution.height, smart_pool_best_fit(problem, {}).solution.height);
}

}  // namespace
}  // namespace memopt::layout
