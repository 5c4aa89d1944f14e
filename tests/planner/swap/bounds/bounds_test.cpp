#include "planner/swap/bounds/bounds.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

BoundLimits fine() { return {.intervals = 1000, .least_bytes = 1}; }

// Block 0 may be away from 20 to 80, and block 1 lives from 30 to 70: 100 bytes go out in 10 ns, and come back.
TEST(Bounds, TheFasterTheCopiesTheLessIsNeeded) {
  auto plan = testing::two_blocks();
  const Liveness liveness = find_liveness(plan.problem);
  EXPECT_NEAR(*least_footprint(plan.problem, liveness, fine()), 100, 1e-3);
  plan.problem.machine = {5, 10, 0, 0};  // 50 bytes are out when block 1 is allocated
  EXPECT_NEAR(*least_footprint(plan.problem, liveness, fine()), 150, 1e-3);
  plan.problem.machine = {10, 2, 0, 0};  // from 60 on, when block 1 may give up its bytes, 40 bytes come back
  EXPECT_NEAR(*least_footprint(plan.problem, liveness, fine()), 160, 1e-3);
}

TEST(Bounds, AddedTimeIsThatOfTheSlowerCopies) {
  auto plan = testing::two_blocks();
  const Liveness liveness = find_liveness(plan.problem);
  plan.problem.machine = {5, 10, 0, 0};
  EXPECT_NEAR(*least_added_time(plan.problem, liveness, 150, fine()), 0, 1e-6);
  EXPECT_NEAR(*least_added_time(plan.problem, liveness, 100, fine()), 10, 1e-3);
}

TEST(Bounds, NothingFitsBelowTheLargestAccess) {
  auto plan = testing::two_blocks();
  const Liveness liveness = find_liveness(plan.problem);
  EXPECT_EQ(*least_added_time(plan.problem, liveness, 99, fine()), std::numeric_limits<double>::infinity());
}

TEST(Bounds, WhatIsPinnedStays) {
  auto plan = testing::two_blocks();
  plan.problem.blocks[0].pinned = true;
  EXPECT_NEAR(*least_footprint(plan.problem, find_liveness(plan.problem), fine()), 200, 1e-3);
}

// Fewer loads are looked at, and fewer intervals told apart: the bound can only be weaker.
TEST(Bounds, AreWeakerWhereLessIsLookedAt) {
  Problem problem;
  problem.operations.push_back({Kind::kNothing, kNoBlock, 0});
  for (std::uint32_t k = 0; k < 60; ++k) {
    problem.blocks.push_back({.id = k, .bytes = 100 + 10 * (k % 7), .persistent = k % 5 == 0});
    if (k % 5 != 0) problem.operations.push_back({Kind::kMalloc, k, 1.0 + k});
    problem.operations.push_back({Kind::kWrite, k, 1.5 + k});
  }
  for (std::uint32_t k = 60; k-- > 0;) {
    problem.operations.push_back({Kind::kRead, k, 130.0 - k});
    if (k % 5 != 0) problem.operations.push_back({Kind::kFree, k, 130.5 - k});
  }
  problem.period = 140;
  problem.machine = {40, 40, 0, 0};
  const Liveness liveness = find_liveness(problem);
  const double whole = *least_footprint(problem, liveness, fine());
  EXPECT_LT(whole, 0.9 * static_cast<double>(liveness.peak));
  BoundLimits few = fine();
  few.entries = 200;
  const double less = *least_footprint(problem, liveness, few);
  EXPECT_LE(less, whole * (1 + 1e-9));
  EXPECT_GT(less, 0.8 * whole);
  BoundLimits joined = fine();
  joined.columns = 100;
  const double fewest = *least_footprint(problem, liveness, joined);
  EXPECT_LT(fewest, whole);
  EXPECT_GT(fewest, 0.5 * whole);
}

TEST(Bounds, SmallBlocksCountAsAway) {
  const auto plan = testing::two_blocks();
  EXPECT_NEAR(*least_footprint(plan.problem, find_liveness(plan.problem), {.intervals = 8, .least_bytes = 101}), 100,
              1e-3);
}

}  // namespace
}  // namespace memopt::swap
