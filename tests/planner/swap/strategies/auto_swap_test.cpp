#include "planner/swap/strategies/auto_swap.h"

#include <gtest/gtest.h>

#include "planner/swap/simulation/verify.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::swap {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A forward and a backward pass: each layer's activation is written, read by the next layer, and read again on the way
// back, last first. Weights are read twice and written.
Problem network(std::uint32_t layers, double layer_ns) {
  using enum Kind;
  Problem problem;
  double time = 0;
  const auto op = [&](Kind kind, std::uint32_t block) {
    problem.operations.push_back({kind, block, time});
    if (kind != kMalloc && kind != kFree) time += layer_ns;
  };
  for (std::uint32_t k = 0; k < layers; ++k) {
    problem.blocks.push_back({.id = k, .bytes = (k % 3 + 1) * kMiB});
    problem.blocks.push_back({.id = 100 + k, .bytes = kMiB / 2, .persistent = true});
  }
  for (std::uint32_t k = 0; k < layers; ++k) {
    op(kMalloc, 2 * k);
    op(kRead, 2 * k + 1);
    op(kWrite, 2 * k);
    if (k != 0) op(kRead, 2 * k - 2);
  }
  for (std::uint32_t k = layers; k-- > 0;) {
    op(kRead, 2 * k);
    op(kWrite, 2 * k + 1);
    op(kFree, 2 * k);
  }
  problem.period = time;
  problem.machine = {10, 10, 1000, 1000};
  problem.align = 512;
  return problem;
}

layout::Limits work() {
  layout::Limits limits;
  limits.work = 20000;
  return limits;
}

TEST(AutoSwap, CandidatesLieAcrossThePeakAndAreLarge) {
  const Problem problem = network(6, 1e6);
  const Liveness liveness = find_liveness(problem);
  for (const Score score : {Score::kDoa, Score::kAoa, Score::kWdoa, Score::kSwdoa}) {
    const std::vector<Gap> ranked = rank_candidates(problem, liveness, score);
    ASSERT_EQ(ranked.size(), 5U) << name_of(score);  // the last activation is read at once
    for (const Gap& gap : ranked) EXPECT_FALSE(problem.blocks[gap.block].persistent);
    // The first layer is away for longest, and under the largest area.
    EXPECT_EQ(ranked[score == Score::kAoa ? 1 : 0].block, score == Score::kAoa ? 2U : 0U) << name_of(score);
  }
}

TEST(AutoSwap, AreaPrefersLargeBlocks) {
  const Problem problem = network(6, 1e6);
  const std::vector<Gap> ranked = rank_candidates(problem, find_liveness(problem), Score::kAoa);
  EXPECT_EQ(problem.blocks[ranked[0].block].bytes, 3 * kMiB);
}

// Copies of the schedule end in time and do not run into each other, as far as gaps are long enough.
TEST(AutoSwap, CopiesInEndInTime) {
  const Problem problem = network(6, 1e6);
  const Liveness liveness = find_liveness(problem);
  const std::vector<Gap> ranked = rank_candidates(problem, liveness, Score::kDoa);
  Problem load = problem;
  load.layout = false;
  load.limit = liveness.peak + 64 * kMiB;
  const Report report = verify(load, {schedule(load, liveness, ranked), {}});
  ASSERT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.timing.added_ns, 0);
}

TEST(AutoSwap, EveryPlanHoldsAndMeetsItsLimit) {
  for (const double layer_ns : {1e6, 1e5}) {
    for (const bool layout : {true, false}) {
      Problem problem = network(8, layer_ns);
      problem.layout = layout;
      problem.limit = 1ULL << 40;
      const Liveness liveness = find_liveness(problem);
      std::size_t feasible = 0;
      const std::uint64_t step = layout::kSanitized ? 3 * kMiB : kMiB;
      for (std::uint64_t limit = liveness.peak / 4; limit <= liveness.peak + 2 * kMiB; limit += step) {
        for (const Score score : {Score::kDoa, Score::kAoa, Score::kWdoa, Score::kSwdoa}) {
          problem.limit = limit;
          const AutoSwapPlan plan = auto_swap(problem, liveness, score, work());
          if (!plan.feasible) {
            EXPECT_GT(plan.footprint, limit);
            problem.limit = plan.footprint;  // what it names is feasible
          } else {
            ++feasible;
          }
          const Report report = verify(problem, plan.decisions);
          EXPECT_EQ(report.fault, std::nullopt) << limit << ' ' << name_of(score);
          if (layout) {
            EXPECT_EQ(report.footprint, plan.footprint);
          }
        }
      }
      EXPECT_GT(feasible, 8U);
    }
  }
}

TEST(AutoSwap, WithoutALimitNothingIsAdded) {
  const Problem problem = network(8, 1e6);
  const Liveness liveness = find_liveness(problem);
  const AutoSwapPlan plan = auto_swap(problem, liveness, Score::kAoa, work());
  ASSERT_TRUE(plan.feasible);
  const Report report = verify(problem, plan.decisions);
  EXPECT_EQ(report.fault, std::nullopt);
  EXPECT_LE(report.timing.added_ns, 0.001 * problem.period);
  EXPECT_LT(plan.footprint, liveness.peak);
  EXPECT_GT(plan.decisions.swaps.size(), 0U);
}

}  // namespace
}  // namespace memopt::swap
