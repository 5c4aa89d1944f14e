// Coverings that are made better as a whole, laid out and simulated.
#include "planner/swap/search/ruin_and_recreate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/swap/simulation/verify.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/swap/busy_problem.h"
#include "tests/planner/swap/layers.h"

namespace memopt::swap {
namespace {

using layout::kSanitized;
using testing::busy_problem;

Budget endless() { return {1e9, Budget::kUnlimited, nullptr}; }

// With few steps a layout lies far above the load that was covered.
TEST(RuinAndRecreate, LaysOutThoroughlyWhatIsAboveTheLimitOtherwise) {
  layout::Limits few, many;
  few.work = 300;
  many.work = 100'000;
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 2 : 8); ++seed) {
    Problem problem = seed % 2 == 0 ? busy_problem(seed) : testing::shrinking_layers(false);
    const Liveness liveness = find_liveness(problem);
    problem.limit = liveness.peak * (seed % 4 == 1 ? 34 : 38) / 100;
    for (const layout::Limits& thorough : {few, many}) {
      Incumbent incumbent(problem, liveness, Objective::kTime, few);
      RuinAndRecreate search(problem, liveness, few, thorough, seed, incumbent);
      EXPECT_TRUE(search.begin()) << seed;
      const SearchPlan& plan = incumbent.plan();
      EXPECT_EQ(plan.feasible, thorough.work == many.work) << seed;
      if (plan.feasible) {
        EXPECT_EQ(verify(problem, plan.decisions).fault, std::nullopt) << seed;
      }
    }
  }
}

TEST(RuinAndRecreate, AddsLessThanTheCoveringThatItBeginsWith) {
  int better = 0, begun = 0;
  for (std::uint64_t seed = kSanitized ? 7 : 1; seed <= 8; seed += kSanitized ? 2 : 1) {
    Problem problem = busy_problem(seed);
    problem.machine.out_bytes_per_ns *= 0.2;
    problem.machine.in_bytes_per_ns *= 0.2;
    const Liveness liveness = find_liveness(problem);
    problem.limit = liveness.peak * 6 / 10;
    layout::Limits layout;
    layout.work = 20000;
    std::vector<Decisions> found;
    for (int again = 0; again < 2; ++again) {
      Incumbent incumbent(problem, liveness, Objective::kTime, layout);
      RuinAndRecreate search(problem, liveness, layout, layout, seed, incumbent);
      if (!search.begin()) break;
      const SearchPlan first = incumbent.plan();
      search.run(endless(), 1, kSanitized ? 10 : 60);
      const SearchPlan& last = incumbent.plan();
      found.push_back(last.decisions);
      if (again != 0 || !first.feasible) continue;
      ++begun;
      EXPECT_TRUE(last.feasible) << seed;
      EXPECT_LE(last.added_ns, first.added_ns) << seed;
      better += last.added_ns < 0.95 * first.added_ns ? 1 : 0;
      const Report report = verify(problem, last.decisions);
      EXPECT_EQ(report.fault, std::nullopt) << seed;
      EXPECT_LE(report.footprint.value_or(0), *problem.limit) << seed;
      EXPECT_NEAR(report.timing.added_ns, last.added_ns, 1e-6 * problem.period) << seed;
    }
    if (found.size() == 2) {
      EXPECT_EQ(found[0], found[1]) << seed;
    }
  }
  EXPECT_GE(begun, kSanitized ? 1 : 4);
  EXPECT_GE(better, begun / 4);
}

// Whatever it is about then, nothing more is begun.
TEST(RuinAndRecreate, BeginsNoLongerThanItIsTold) {
  Problem problem = testing::layers(40, 1 << 20);
  const Liveness liveness = find_liveness(problem);
  layout::Limits layout;
  layout.work = 300;
  for (const std::uint64_t part : {60, 1}) {  // one that can be covered, and one that can't
    problem.limit = liveness.peak * part / 100;
    int begun = 0, not_begun = 0;
    for (int most = 0;; most = most * 5 / 4 + 1) {
      Incumbent incumbent(problem, liveness, Objective::kTime, layout);
      RuinAndRecreate search(problem, liveness, layout, layout, 1, incumbent);
      int asked = 0;
      const bool begins = search.begin([&] { return asked++ >= most; });
      begins ? ++begun : ++not_begun;
      EXPECT_EQ(begins, incumbent.has_plan()) << most;
      if (asked <= most) break;
      EXPECT_LE(asked, most + 6) << most;
    }
    EXPECT_GT(begun, 0);
    EXPECT_GT(not_begun, 5);
  }
}

// A plan that fits is worth more than a better one.
TEST(RuinAndRecreate, GoesOnUntilItIsBelowTheLimit) {
  int below = 0;
  Problem problem = testing::shrinking_layers(true);
  const Liveness liveness = find_liveness(problem);
  problem.limit = liveness.peak * 54 / 100;
  layout::Limits layout, thorough;
  layout.work = 300;
  thorough.work = 1000;
  std::vector<Decisions> first;  // of the first seed, each time
  for (const std::uint64_t seed :
       kSanitized ? std::vector<std::uint64_t>{1, 2} : std::vector<std::uint64_t>{1, 1, 2, 3, 4, 5, 6, 7, 8}) {
    Incumbent incumbent(problem, liveness, Objective::kTime, layout);
    RuinAndRecreate search(problem, liveness, layout, thorough, seed, incumbent);
    ASSERT_TRUE(search.begin()) << seed;
    ASSERT_FALSE(incumbent.plan().feasible) << seed;
    search.run(endless(), 1, 320);
    below += incumbent.plan().feasible ? 1 : 0;
    if (seed == 1) first.push_back(incumbent.plan().decisions);
  }
  EXPECT_EQ(first.front(), first.back());
  EXPECT_GE(below, kSanitized ? 1 : 6);
}

}  // namespace
}  // namespace memopt::swap
