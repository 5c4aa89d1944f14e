// The bounds against the best plans there are.
#include <gtest/gtest.h>

#include "planner/swap/bounds/bounds.h"
#include "planner/swap/model/liveness.h"
#include "tests/planner/swap/exhaustive/exhaustive.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"

namespace memopt::swap {
namespace {

using testing::exhaustive;
using testing::Optimum;
using testing::problems_wanted;
using testing::TinyProblems;

constexpr double kTight = 1e-6;  // of what is bounded

TEST(BoundsOfTinyProblems, AreNeverAboveTheOptimum) {
  TinyProblems problems(4);
  std::size_t met = 0, waits = 0;
  for (int k = 0; k < problems_wanted(100); ++k) {
    Problem problem = problems.next(true, k % 3 == 0 ? 500 : 3000);
    problem.clean_drops = k % 3 == 0;
    const Liveness liveness = find_liveness(problem);
    const Optimum best = exhaustive(problem, {.most_candidates = 100'000});
    // The last as for iterations that are far too long: fewer intervals, and one load in each.
    for (const BoundLimits& limits : {BoundLimits{.intervals = 1000, .least_bytes = 1}, BoundLimits{.intervals = 4},
                                      BoundLimits{.intervals = 3, .least_bytes = 1, .entries = 0}}) {
      const auto footprint = least_footprint(problem, liveness, limits);
      ASSERT_TRUE(footprint);
      if (const auto* optimal = best.least_footprint(1e-6)) {
        const auto least = static_cast<double>(optimal->footprint);
        EXPECT_LE(*footprint, least * (1 + kTight)) << k;
        met += *footprint > least * (1 - kTight);
      }
      for (const auto& optimal : best.plans) {
        const auto added = least_added_time(problem, liveness, optimal.footprint, limits);
        ASSERT_TRUE(added);
        EXPECT_LE(*added, optimal.added_ns + kTight * problem.period) << k;
        waits += *added > 0;
      }
    }
  }
  const auto wanted = static_cast<std::size_t>(problems_wanted(100));
  EXPECT_GT(met, wanted / 5);
  EXPECT_GT(waits, wanted / 20);
}

TEST(BoundsOfTinyProblems, AreNeverAboveTheOptimumWithoutLayout) {
  TinyProblems problems(5);
  std::size_t plans = 0;
  for (int k = 0; k < problems_wanted(60); ++k) {
    Problem problem = problems.next(false, k % 3 == 0 ? 100 : 300);
    problem.clean_drops = k % 3 == 0;
    const Liveness liveness = find_liveness(problem);
    for (std::uint64_t percent = 40; percent <= 100; percent += 20) {
      problem.limit = liveness.peak * percent / 100;
      const Optimum best = exhaustive(problem);
      if (best.plans.empty()) continue;
      ++plans;
      const auto added = least_added_time(problem, liveness, *problem.limit, {.intervals = 1000, .least_bytes = 1});
      ASSERT_TRUE(added);
      EXPECT_LE(*added, best.plans[0].added_ns + kTight * problem.period) << k << ' ' << percent;
    }
  }
  EXPECT_GT(plans, static_cast<std::size_t>(problems_wanted(60)));
}

}  // namespace
}  // namespace memopt::swap
