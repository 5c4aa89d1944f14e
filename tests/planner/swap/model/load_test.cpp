// What no plan can do with less, held against all plans of small problems.
#include "planner/swap/model/load.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "planner/swap/model/liveness.h"
#include "tests/planner/swap/exhaustive/exhaustive.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"

namespace memopt::swap {
namespace {

TEST(LeastLoad, IsNotAboveTheLeastFootprintOfAnyPlan) {
  testing::TinyProblems problems(41);
  const int wanted = testing::problems_wanted(80);
  int reached = 0;
  for (int i = 0; i < wanted; ++i) {
    const Problem problem = problems.next(true, 2000);
    const testing::Optimum best = testing::exhaustive(problem);
    ASSERT_FALSE(best.plans.empty());
    const std::uint64_t least = least_load(problem, find_liveness(problem));
    EXPECT_LE(least, best.plans.front().footprint) << i;
    reached += least == best.plans.front().footprint ? 1 : 0;
  }
  EXPECT_GT(reached, wanted / 4);
}

TEST(LeastLoad, ALaunchNeedsAllOfItsBlocks) {
  using enum Kind;
  Problem problem;
  for (std::uint32_t k = 0; k < 4; ++k) problem.blocks.push_back({.id = k, .bytes = 10U + k, .persistent = true});
  const auto access = [&](std::uint32_t block, double time, bool continues) {
    problem.operations.push_back({.kind = kRead, .block = block, .time = time, .continues = continues});
  };
  access(0, 0, false);
  access(1, 10, false);
  access(2, 10, true);
  access(2, 10, true);
  access(3, 10, true);
  access(2, 20, false);
  problem.period = 30;
  problem.machine = {1, 1, 0, 0};
  EXPECT_EQ(least_load(problem, find_liveness(problem)), 11U + 12 + 13);
  problem.blocks[0].pinned = problem.blocks[1].pinned = true;
  EXPECT_EQ(least_load(problem, find_liveness(problem)), 10U + 11 + 12 + 13);
  for (Operation& operation : problem.operations) operation.continues = false;
  EXPECT_EQ(least_load(problem, find_liveness(problem)), 10U + 11 + 13);
}

}  // namespace
}  // namespace memopt::swap
