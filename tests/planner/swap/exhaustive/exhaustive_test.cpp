// The exhaustive search itself, and that no published strategy is better than it.
#include "tests/planner/swap/exhaustive/exhaustive.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "planner/swap/model/liveness.h"
#include "planner/swap/simulation/verify.h"
#include "planner/swap/strategies/auto_swap.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"
#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

using testing::exhaustive;
using testing::Optimum;
using testing::problems_wanted;
using testing::TinyProblems;

constexpr double kTolerance = 1e-3;  // ns

layout::Limits work() {
  layout::Limits limits;
  limits.work = 2000;
  return limits;
}

TEST(Exhaustive, FindsWhatCanBeFollowedByHand) {
  auto plan = testing::two_blocks();
  Optimum best = exhaustive(plan.problem);
  ASSERT_EQ(best.plans.size(), 1U);
  EXPECT_EQ(best.plans[0].footprint, 100U);
  EXPECT_EQ(best.plans[0].added_ns, 0);

  // The copy out lasts from 20 to 45, and the allocation at 30 waits for it.
  plan.problem.machine = {4, 10, 0, 0};
  best = exhaustive(plan.problem);
  ASSERT_EQ(best.plans.size(), 2U);
  EXPECT_EQ(best.plans[0].footprint, 100U);
  EXPECT_NEAR(best.plans[0].added_ns, 15, kTolerance);
  EXPECT_EQ(best.plans[1].footprint, 200U);
  EXPECT_EQ(best.plans[1].added_ns, 0);
  EXPECT_EQ(best.least_added_time(99), nullptr);
  EXPECT_EQ(best.least_added_time(199), &best.plans[0]);
  EXPECT_EQ(best.least_footprint(14), &best.plans[1]);

  plan.problem.blocks[0].pinned = true;
  best = exhaustive(plan.problem);
  ASSERT_EQ(best.plans.size(), 1U);
  EXPECT_EQ(best.plans[0].footprint, 200U);
}

TEST(Exhaustive, WithoutLayoutForTheLimitGiven) {
  auto plan = testing::two_blocks();
  plan.problem.machine = {4, 10, 0, 0};
  plan.problem.layout = false;
  for (const auto& [limit, added] : {std::pair{200, 0.0}, {199, 15.0}, {100, 15.0}}) {
    plan.problem.limit = limit;
    const Optimum best = exhaustive(plan.problem);
    ASSERT_EQ(best.plans.size(), 1U) << limit;
    EXPECT_NEAR(best.plans[0].added_ns, added, kTolerance) << limit;
  }
  plan.problem.limit = 99;
  EXPECT_TRUE(exhaustive(plan.problem).plans.empty());
}

// Always alive once, and for the last 20 ns twice: one place would be too few without a swap.
TEST(Exhaustive, ABlockThatCrossesHasTwoPlacesOrIsAway) {
  Problem problem;
  problem.blocks = {{.id = 0, .bytes = 100}};
  using enum Kind;
  problem.operations = {{kRead, 0, 0, 1}, {kFree, 0, 10, 1}, {kNothing, kNoBlock, 20}, {kMalloc, 0, 30}};
  problem.period = 40;
  problem.machine = {10, 10, 0, 0};
  problem.chunk = 1;
  EXPECT_EQ(exhaustive(problem).plans[0].footprint, 100U);
  problem.operations[1] = {kNothing, kNoBlock, 10};
  problem.operations[2] = {kMalloc, 0, 20};
  problem.operations[3] = {kFree, 0, 30, 1};
  const Optimum best = exhaustive(problem);
  ASSERT_EQ(best.plans.size(), 1U);
  EXPECT_EQ(best.plans[0].footprint, 100U);  // gone after its last access
  ASSERT_EQ(best.plans[0].decisions.swaps.size(), 1U);
  EXPECT_FALSE(best.plans[0].decisions.swaps[0].returns());
  problem.blocks[0].pinned = true;
  EXPECT_EQ(exhaustive(problem).plans[0].footprint, 200U);
  EXPECT_EQ(exhaustive(problem).plans[0].decisions.places[0].offsets.size(), 2U);
}

TEST(Exhaustive, RefusesWhatIsTooLarge) {
  auto plan = testing::two_blocks();
  EXPECT_THROW(exhaustive(plan.problem, {.most_candidates = 3}), std::invalid_argument);
  plan.problem.operations.resize(13, {Kind::kNothing, kNoBlock, 95});
  EXPECT_THROW(exhaustive(plan.problem), std::invalid_argument);
}

TEST(Exhaustive, LeavingOutWhatIsWorseChangesNothing) {
  TinyProblems problems(1);
  std::size_t judged = 0, judged_all = 0;
  for (int k = 0; k < problems_wanted(40); ++k) {
    const Problem problem = problems.next(true, 40);
    const Optimum best = exhaustive(problem);
    const Optimum all = exhaustive(problem, {.fewest_waits = false, .skip_worse = false});
    ASSERT_EQ(best.plans.size(), all.plans.size()) << k;
    for (std::size_t i = 0; i < best.plans.size(); ++i) {
      EXPECT_EQ(best.plans[i].footprint, all.plans[i].footprint) << k;
      EXPECT_NEAR(best.plans[i].added_ns, all.plans[i].added_ns, kTolerance) << k;
    }
    judged += best.judged;
    judged_all += all.judged;
  }
  EXPECT_LT(judged, judged_all / 2);
}

TEST(Exhaustive, NoScoreIsBetter) {
  TinyProblems problems(2);
  std::size_t plans = 0, equal = 0, swapped = 0;
  for (int k = 0; k < problems_wanted(60); ++k) {
    Problem problem = problems.next(true, 3000);
    const Liveness liveness = find_liveness(problem);
    const Optimum best = exhaustive(problem);
    ASSERT_FALSE(best.plans.empty());
    for (const Score score : kScores) {
      for (const auto& optimal : best.plans) {
        problem.limit = optimal.footprint;
        const AutoSwapPlan plan = auto_swap(problem, liveness, score, work());
        if (!plan.feasible) {
          EXPECT_GE(plan.footprint, best.plans[0].footprint);
          continue;
        }
        const Report report = verify(problem, plan.decisions);
        ASSERT_EQ(report.fault, std::nullopt) << k;
        EXPECT_GE(report.timing.added_ns, best.least_added_time(*report.footprint)->added_ns - kTolerance)
            << k << ' ' << name_of(score);
        ++plans;
        swapped += !plan.decisions.swaps.empty();
        equal += report.timing.added_ns <= optimal.added_ns + kTolerance;
      }
      problem.limit.reset();
      const AutoSwapPlan plan = auto_swap(problem, liveness, score, work());
      if (!plan.feasible) continue;
      const Report report = verify(problem, plan.decisions);
      EXPECT_GE(plan.footprint, best.least_footprint(report.timing.added_ns + kTolerance)->footprint) << k;
    }
  }
  RecordProperty("plans", static_cast<int>(plans));
  RecordProperty("equal", static_cast<int>(equal));
  EXPECT_GT(swapped, static_cast<std::size_t>(problems_wanted(60) / 3));
  EXPECT_GT(equal, plans / 4);
}

TEST(Exhaustive, NoScoreIsBetterWithoutLayout) {
  TinyProblems problems(3);
  std::size_t plans = 0, swapped = 0;
  for (int k = 0; k < problems_wanted(40); ++k) {
    Problem problem = problems.next(false, 300);
    const Liveness liveness = find_liveness(problem);
    for (std::uint64_t percent = 40; percent <= 100; percent += 20) {
      problem.limit = liveness.peak * percent / 100;
      const Optimum best = exhaustive(problem);
      for (const Score score : kScores) {
        const AutoSwapPlan plan = auto_swap(problem, liveness, score, work());
        if (!plan.feasible) continue;
        const Report report = verify(problem, plan.decisions);
        if (report.fault) continue;  // more than the limit at once, in simulated time
        ASSERT_FALSE(best.plans.empty()) << k;
        EXPECT_GE(report.timing.added_ns, best.plans[0].added_ns - kTolerance) << k << ' ' << name_of(score);
        ++plans;
        swapped += !plan.decisions.swaps.empty();
      }
    }
  }
  EXPECT_GT(plans, static_cast<std::size_t>(problems_wanted(40)));
  EXPECT_GT(swapped, static_cast<std::size_t>(problems_wanted(40) / 4));
}

}  // namespace
}  // namespace memopt::swap
