// What counted searches are for: a wider limit is never slower, more attempts are never worse, and no limit is without
// a plan where a narrower one has one. Not to a tolerance.
#include "planner/swap/search/ladder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "planner/swap/model/load.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"
#include "tests/planner/swap/layers.h"
#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

using layout::kSanitized;

constexpr std::uint64_t kFew = 8;  // steps, as each is a search

SearchLimits counted(std::uint64_t attempts, std::uint64_t seed = 1) {
  SearchLimits limits;
  limits.attempts = attempts;
  limits.seed = seed;
  return limits;
}

// Small, as each limit is as many searches as it has steps. Copies take long, so that what fits is bought with time.
std::vector<Problem> slow_problems() {
  std::vector<Problem> problems;
  testing::TinyProblems tiny(21);
  for (int k = 0; k < (kSanitized ? 1 : 2); ++k) problems.push_back(tiny.next(true, 3000));
  if (!kSanitized) problems.push_back(testing::layers(3, 1 << 20));
  for (Problem& problem : problems) {
    problem.machine.out_bytes_per_ns *= 0.3;
    problem.machine.in_bytes_per_ns *= 0.3;
  }
  return problems;
}

void expect_holds(const Problem& problem, const SearchPlan& plan) {
  const Report report = verify(problem, plan.decisions);
  ASSERT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.footprint, plan.footprint);
  EXPECT_NEAR(report.timing.added_ns, plan.added_ns, 1e-3);
}

TEST(Ladder, AWiderLimitIsNeverSlowerNorWithoutAPlan) {
  int without = 0, slower = 0, free = 0;
  for (Problem& problem : slow_problems()) {
    const Liveness liveness = find_liveness(problem);
    bool held = false;
    double before = std::numeric_limits<double>::infinity();
    std::uint64_t named = ~std::uint64_t{0};
    // Also between steps, and below what any plan needs.
    const std::uint64_t least = least_load(problem, liveness) * 9 / 10;
    for (std::uint64_t k = 0; k <= 5 && before > 0; ++k) {
      const std::uint64_t limit = least + (liveness.peak - least) * k / 5;
      problem.limit = limit;
      const SearchPlan found = search_by_steps(problem, liveness, Objective::kTime, counted(kFirstRoundAttempts), kFew);
      EXPECT_TRUE(found.feasible || !(held || limit >= named)) << limit << " of " << liveness.peak;
      if (!found.feasible) {
        EXPECT_GT(found.footprint, limit);
        EXPECT_LE(found.footprint, named);
        named = found.footprint;
        ++without;
        continue;
      }
      expect_holds(problem, found);
      held = true;
      EXPECT_LE(found.added_ns, before) << limit << " of " << liveness.peak;
      before = found.added_ns;
      ++(before > 0 ? slower : free);
    }
  }
  EXPECT_GT(without, 0);
  EXPECT_GT(free, 0);
  // Of the few problems of a sanitised build none may be slow.
  if (!kSanitized) {
    EXPECT_GT(slower, 2);
  }
}

TEST(Ladder, TheLeastLimitThatIsNamedHasAPlan) {
  Problem problem = testing::layers(3, 1 << 20);
  const Liveness liveness = find_liveness(problem);
  for (const std::uint64_t part : {1, 4}) {
    problem.limit = least_load(problem, liveness) * part / 5;
    const SearchPlan none = search_by_steps(problem, liveness, Objective::kTime, counted(0), kFew);
    ASSERT_FALSE(none.feasible);
    problem.limit = none.footprint;
    const SearchPlan found = search_by_steps(problem, liveness, Objective::kTime, counted(0), kFew);
    EXPECT_TRUE(found.feasible);
    expect_holds(problem, found);
  }
}

TEST(Ladder, MoreAttemptsAreNeverWorse) {
  int better = 0;
  for (const Objective objective : {Objective::kTime, Objective::kFootprint}) {
    for (Problem& problem : slow_problems()) {
      const Liveness liveness = find_liveness(problem);
      problem.limit = liveness.peak * 7 / 10;
      std::optional<SearchPlan> before;
      for (const std::uint64_t attempts : {0, 64, 256}) {
        if (kSanitized && attempts > 64) break;
        const SearchPlan found = search_by_steps(problem, liveness, objective, counted(attempts, 2), kFew);
        if (found.feasible) expect_holds(problem, found);
        if (before) {
          EXPECT_TRUE(found.feasible || !before->feasible) << attempts;
          const bool timed = objective == Objective::kTime && found.feasible && before->feasible;
          const bool is_better = timed ? found.added_ns < before->added_ns : found.footprint < before->footprint;
          const bool is_worse = timed ? found.added_ns > before->added_ns
                                      : found.feasible == before->feasible && found.footprint > before->footprint;
          EXPECT_FALSE(is_worse) << attempts;
          better += is_better || found.feasible != before->feasible;
        }
        before = found;
      }
    }
  }
  EXPECT_GT(better, kSanitized ? -1 : 0);
}

TEST(Ladder, RepeatsAndEndsWithinAnyNumberOfAttempts) {
  Problem problem = testing::two_blocks().problem;
  const Liveness liveness = find_liveness(problem);
  const SearchPlan free = search_by_steps(problem, liveness, Objective::kFootprint, counted(100), kFew);
  EXPECT_EQ(free.footprint, 100U);
  EXPECT_EQ(free.added_ns, 0);
  problem.limit = 100;
  problem.machine = {4, 10, 0, 0};  // 25 ns out of 20 to 30
  const SearchPlan one = search_by_steps(problem, liveness, Objective::kTime, counted(100), kFew);
  EXPECT_TRUE(one.feasible);
  EXPECT_NEAR(one.added_ns, 15, 1e-3);
  EXPECT_EQ(search_by_steps(problem, liveness, Objective::kTime, counted(100), kFew).decisions, one.decisions);
  std::atomic<bool> cancelled{true};
  SearchLimits limits = counted(~std::uint64_t{0});
  limits.cancelled = &cancelled;
  EXPECT_FALSE(search_by_steps(problem, liveness, Objective::kTime, limits, kFew).decisions.places.empty());
}

// Where bytes are taken in order of issue a plan may take longer within more: there is a plan, and it holds.
TEST(Ladder, WithoutALayoutPlansHold) {
  Problem problem = testing::layers(3, 1 << 20);
  problem.layout = false;
  problem.limit = 0;
  const Liveness liveness = find_liveness(problem);
  for (const std::uint64_t percent : {60, 100}) {
    problem.limit = liveness.peak * percent / 100;
    const SearchPlan found = search_by_steps(problem, liveness, Objective::kTime, counted(64), kFew);
    ASSERT_TRUE(found.feasible);
    const Report report = verify(problem, found.decisions);
    EXPECT_EQ(report.fault, std::nullopt);
    EXPECT_EQ(report.timing.added_ns, found.added_ns);
  }
}

}  // namespace
}  // namespace memopt::swap
