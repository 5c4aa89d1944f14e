// The linear bound, held against everything that can be tried, and where its value is known.
#include "planner/recompute/bounds/linear_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "planner/recompute/bounds/bound.h"
#include "planner/recompute/bounds/contents.h"
#include "planner/recompute/bounds/relaxation.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/optimum.h"
#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using testing::Iteration;
using testing::layers;
using testing::optimum;
using testing::Program;
using testing::random_program;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kTight = 1e-6;

double linear(const Iteration& one, std::uint64_t budget, const LinearBoundLimits& limits = {}) {
  return linear_least_added_ns(one.problem, one.liveness, one.graph, budget, limits).ns;
}
double knapsack(const Iteration& one, std::uint64_t budget) {
  return least_added_ns(one.problem, one.liveness, one.graph, budget);
}

// The bound of a program that is small enough to be exact, and what the bound of one launch says.
void expect_bounds(const swap::Problem& problem, std::uint64_t budget, double its, double of_one_launch) {
  const Iteration one(problem);
  EXPECT_NEAR(linear(one, budget), its, kTight);
  EXPECT_NEAR(knapsack(one, budget), of_one_launch, kTight);
  const auto best = optimum(one.problem, one.liveness, budget);
  ASSERT_TRUE(best);
  EXPECT_GE(*best, its - kTight);
}

void use(Program& program, std::uint32_t block) { program.launch(1, {block}, {}); }
void pass_through(Program& program, std::uint64_t bytes) { program.release(program.make(bytes, 1, {})); }

TEST(LinearBound, CountsWhatIsNeededToMakeItAgain) {
  Program program;
  const auto first = program.make(100, 10, {});
  const auto second = program.make(100, 20, {first});
  const auto third = program.make(100, 40, {second});
  program.release(first);
  program.release(second);
  pass_through(program, 200);
  use(program, third);
  program.release(third);
  expect_bounds(program.problem(), 300, 0, 0);
  expect_bounds(program.problem(), 200, 70, 40);
  EXPECT_NEAR(linear(Iteration(program.problem()), 250), 35, kTight);  // half of it stays
}

TEST(LinearBound, CountsEachTimeABlockHasToLeave) {
  Program program;
  const auto block = program.make(100, 10, {});
  for (int k = 0; k < 3; ++k) {
    pass_through(program, 200);
    use(program, block);
  }
  program.release(block);
  expect_bounds(program.problem(), 200, 30, 10);
  EXPECT_NEAR(linear(Iteration(program.problem()), 275), 7.5, kTight);
}

// What the program has freed may be kept from one replay to the next: it is made again once.
TEST(LinearBound, WhatWasFreedMayStayBetweenReplays) {
  Program program;
  const auto source = program.make(10, 50, {});
  const auto x = program.make(100, 10, {source});
  const auto y = program.make(100, 20, {source});
  program.release(source);
  pass_through(program, 300);
  use(program, x);
  pass_through(program, 290);
  use(program, y);
  program.release(x);
  program.release(y);
  expect_bounds(program.problem(), 300, 50 + 10 + 20, 10 + 20);
}

TEST(LinearBound, CountsAllMakersOfABlock) {
  Program program;
  const auto block = program.make(100, 10, {});
  program.launch(7, {block}, {block});
  program.launch(5, {block}, {block});
  pass_through(program, 200);
  use(program, block);
  program.release(block);
  expect_bounds(program.problem(), 200, 22, 10);
}

TEST(LinearBound, CountsALaunchOfSeveralOutputsOnce) {
  Program program;
  const auto x = program.allocate(100), y = program.allocate(100);
  program.launch(10, {}, {x, y});
  pass_through(program, 200);
  program.launch(1, {x, y}, {});
  program.release(x);
  program.release(y);
  expect_bounds(program.problem(), 200, 10, 10);
}

// Both are made again together, though our own planner does not do so.
TEST(LinearBound, BlocksThatALaunchChangesTogetherAreMadeAgainTogether) {
  Program program;
  const auto x = program.allocate(10), y = program.allocate(10);
  program.launch(1, {}, {x, y});
  program.launch(3, {x, y}, {x, y});
  pass_through(program, 30);
  use(program, x);
  use(program, y);
  program.release(x);
  program.release(y);
  expect_bounds(program.problem(), 30, 4, 1);
}

TEST(LinearBound, IsInfiniteWhereWhatHasToLeaveCanNotComeBack) {
  Program program;
  const auto weight = program.persistent(10);
  const auto block = program.make(100, 10, {weight});
  program.launch(1, {weight}, {weight});  // so that the block is not what it would be if it were made again
  pass_through(program, 200);
  use(program, block);
  program.release(block);
  const Iteration one(program.problem());
  EXPECT_EQ(linear(one, 310), 0);
  for (const std::uint64_t budget : {309, 210}) {
    EXPECT_EQ(linear(one, budget), kInfinite) << budget;
    EXPECT_TRUE(std::isfinite(knapsack(one, budget))) << budget;
    EXPECT_FALSE(optimum(one.problem, one.liveness, budget)) << budget;
  }
  const Iteration chain(layers(40));
  EXPECT_EQ(linear(chain, 299), kInfinite);  // a launch reads two and writes one
  EXPECT_TRUE(std::isfinite(linear(chain, 300)));
}

// Each bound that is reported is better than the one before, and the last one is the one that is returned.
TEST(LinearBound, SaysWhatItHasWhenTheTimeIsOver) {
  Program program;
  const auto block = program.make(100, 10, {});
  for (int k = 0; k < 6; ++k) {
    pass_through(program, 200);
    use(program, block);
  }
  program.release(block);
  const Iteration one(program.problem());
  const auto reported = [&](const LinearBoundLimits& limits) {
    std::vector<LinearBound> all;
    const LinearBound last = linear_least_added_ns(one.problem, one.liveness, one.graph, 200, limits,
                                                   [&](const LinearBound& better) { all.push_back(better); });
    EXPECT_EQ(all.back().ns, last.ns);
    EXPECT_EQ(all.back().instants, last.instants);
    EXPECT_EQ(all.front().instants, 0u);
    for (std::size_t k = 1; k < all.size(); ++k) EXPECT_GT(all[k].ns, all[k - 1].ns);
    return all;
  };
  EXPECT_EQ(reported({.seconds = 0}).size(), 1u);
  EXPECT_EQ(reported({.instants = 4}).back().instants, 4u);
  EXPECT_NEAR(reported({.instants = 4}).back().ns, 40, kTight);
  EXPECT_GE(reported({}).size(), 3u);
  EXPECT_NEAR(reported({}).back().ns, 60, kTight);
}

// The bound, and programmes with any instants, solved or not: never above the best of all plans.
TEST(LinearBound, OfSmallProgramsIsNeverAboveTheBestPlan) {
  std::mt19937_64 random(11);
  const int wanted = layout::kSanitized ? 80 : 300;
  int possible = 0, better = 0, met = 0, impossible = 0, said_so = 0;
  double all_linear = 0, all_knapsack = 0, all_best = 0;
  for (int k = 0; k < wanted; ++k) {
    const Iteration one(random_program(random, 5 + k % 4));
    const Contents contents(one.problem, one.liveness, one.graph);
    for (const std::uint64_t percent : {45, 60, 75, 90}) {
      const std::uint64_t budget = one.liveness.peak * percent / 100;
      const double best = optimum(one.problem, one.liveness, budget).value_or(kInfinite);
      const double bound = linear(one, budget), of_one = knapsack(one, budget);
      ASSERT_LE(bound, best + kTight) << "program " << k << ", " << percent << " %";
      ASSERT_GE(bound, of_one) << "program " << k << ", " << percent << " %";
      std::vector<std::uint32_t> instants;
      for (std::uint32_t l = 0; l < contents.launches(); ++l) {
        if (random() % 2 == 0) instants.push_back(l);
      }
      ASSERT_LE(relax(contents, budget, instants, random() % 4 == 0 ? 0 : 60).ns, best + kTight)
          << "program " << k << ", " << percent << " %";
      if (std::isinf(best)) {
        ++impossible;
        said_so += std::isinf(bound) ? 1 : 0;
        continue;
      }
      ++possible;
      better += bound > of_one + kTight ? 1 : 0;
      met += bound > best - kTight ? 1 : 0;
      all_linear += bound;
      all_knapsack += of_one;
      all_best += best;
    }
  }
  std::printf("%d possible: met in %d, better than of one launch in %d; %.2f of the best, of one launch %.2f\n",
              possible, met, better, all_linear / all_best, all_knapsack / all_best);
  std::printf("%d impossible, as it says in %d\n", impossible, said_so);
  EXPECT_GT(possible, wanted);
  EXPECT_GT(all_linear, 1.2 * all_knapsack);
  EXPECT_GT(better, possible / 25);
  EXPECT_GT(met, possible * 7 / 10);
  EXPECT_GT(said_so, impossible * 9 / 10);
}

}  // namespace
}  // namespace memopt::recompute
