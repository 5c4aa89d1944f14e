#include "planner/swap/strategies/tuned_swap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/swap/simulation/verify.h"
#include "tests/planner/swap/exhaustive/exhaustive.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"

namespace memopt::swap {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kTolerance = 1e-3;  // ns

layout::Limits work() {
  layout::Limits limits;
  limits.work = 3000;
  return limits;
}

// Activations of several sizes, written forwards and read backwards, in operations of several lengths: the scores
// differ in what they choose.
Problem network(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  Problem problem;
  const auto op = [&](Kind kind, std::uint32_t block) {
    problem.operations.push_back({kind, block, problem.period});
    if (kind != Kind::kMalloc && kind != Kind::kFree) problem.period += static_cast<double>(100 + below(900)) * 1000;
  };
  const auto layers = static_cast<std::uint32_t>(6 + below(5));
  for (std::uint32_t b = 0; b < layers; ++b) {
    problem.blocks.push_back({.id = b, .bytes = (1 + below(6)) * kMiB});
    op(Kind::kMalloc, b);
    op(Kind::kWrite, b);
  }
  for (std::uint32_t b = layers; b-- > 0;) {
    op(Kind::kRead, b);
    op(Kind::kFree, b);
  }
  problem.machine = {4, 4, 1000, 1000};
  problem.align = 512;
  return problem;
}

TEST(RankByWeights, ASingleScoreIsItsOwnRanking) {
  const Problem problem = network(1);
  const Liveness liveness = find_liveness(problem);
  const Scored scored = score_candidates(problem, liveness);
  for (const Score score : kScores) {
    Weights weights{};
    weights[static_cast<std::size_t>(score)] = 0.5;
    EXPECT_EQ(rank(scored, weights), rank_candidates(problem, liveness, score)) << name_of(score);
  }
  Weights against{};
  against[0] = -1;
  auto reversed = rank(scored, against);
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(reversed, rank_candidates(problem, liveness, Score::kDoa));
}

TEST(RankByWeights, EqualScoresCountForNothing) {
  const Scored scored{{{0, 1, 5}, {1, 2, 6}}, {{{3, 3}, {1, 2}, {7, 7}, {0, 0}}}};
  EXPECT_EQ(rank(scored, {1, 0.1, 1, 1})[0].block, 1U);
  EXPECT_EQ(rank(scored, {1, -0.1, 1, 1})[0].block, 0U);
  EXPECT_TRUE(rank({}, {1, 1, 1, 1}).empty());
}

TEST(TunedSwap, IsAtLeastAsGoodAsEachScore) {
  std::size_t better = 0, feasible = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Problem problem = network(seed);
    const Liveness liveness = find_liveness(problem);
    for (const std::uint64_t percent : {55, 70, 0}) {
      problem.limit.reset();
      if (percent != 0) problem.limit = liveness.peak * percent / 100;
      const TunedPlan tuned = tuned_swap(problem, liveness, work(), {.evaluations = 20});
      EXPECT_LE(tuned.evaluations, 20U);
      EXPECT_LE(tuned.planned, tuned.evaluations);
      bool beaten = tuned.plan.feasible;
      for (const Score score : kScores) {
        const AutoSwapPlan single = auto_swap(problem, liveness, score, work());
        if (!single.feasible) continue;
        ASSERT_TRUE(tuned.plan.feasible) << seed << ' ' << percent;
        if (problem.limit) {
          const double added = verify(problem, single.decisions).timing.added_ns;
          EXPECT_LE(tuned.added_ns, added + kTolerance) << seed << ' ' << percent << ' ' << name_of(score);
          beaten = beaten && tuned.added_ns < added - kTolerance;
        } else {
          EXPECT_LE(tuned.plan.footprint, single.footprint) << seed;
          beaten = beaten && tuned.plan.footprint < single.footprint;
        }
      }
      better += beaten;
      if (!tuned.plan.feasible) continue;
      ++feasible;
      const Report report = verify(problem, tuned.plan.decisions);
      EXPECT_EQ(report.fault, std::nullopt);
      EXPECT_NEAR(report.timing.added_ns, tuned.added_ns, kTolerance);
    }
  }
  EXPECT_GT(feasible, 8U);
  EXPECT_GT(better, 0U);
}

TEST(TunedSwap, TheSameSeedGivesTheSamePlan) {
  Problem problem = network(3);
  const Liveness liveness = find_liveness(problem);
  problem.limit = liveness.peak * 55 / 100;
  const TuningOptions options{.evaluations = 16, .seed = 9};
  const TunedPlan one = tuned_swap(problem, liveness, work(), options),
                  other = tuned_swap(problem, liveness, work(), options);
  EXPECT_EQ(one.plan.decisions, other.plan.decisions);
  EXPECT_EQ(one.weights, other.weights);
}

TEST(TunedSwap, NothingToSwap) {
  Problem problem = network(1);
  for (Block& block : problem.blocks) block.pinned = true;
  const Liveness liveness = find_liveness(problem);
  problem.limit = liveness.peak / 2;
  TunedPlan tuned = tuned_swap(problem, liveness, work());
  EXPECT_FALSE(tuned.plan.feasible);
  EXPECT_EQ(tuned.planned, 1U);
  EXPECT_GE(tuned.plan.footprint, liveness.peak);
  problem.limit = 2 * liveness.peak;
  tuned = tuned_swap(problem, liveness, work());
  EXPECT_TRUE(tuned.plan.feasible);
  EXPECT_EQ(tuned.evaluations, 1U);  // nothing is added
}

TEST(TunedSwap, IsNeverBetterThanTheOptimum) {
  testing::TinyProblems problems(6);
  for (int k = 0; k < testing::problems_wanted(25); ++k) {
    Problem problem = problems.next(true, 1500);
    const Liveness liveness = find_liveness(problem);
    const testing::Optimum best = testing::exhaustive(problem);
    for (const auto& optimal : best.plans) {
      problem.limit = optimal.footprint;
      const TunedPlan tuned = tuned_swap(problem, liveness, work(), {.evaluations = 10});
      if (!tuned.plan.feasible) continue;
      EXPECT_GE(tuned.added_ns, best.least_added_time(tuned.plan.footprint)->added_ns - kTolerance) << k;
    }
  }
}

}  // namespace
}  // namespace memopt::swap
