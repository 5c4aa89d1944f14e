#include "planner/swap/bounds.h"

#include <gtest/gtest.h>

#include <limits>

#include "small_plans.h"

namespace memopt::swap {
namespace {

BoundLimits fine() { return {.intervals = 1000, .least_bytes = 1}; }

// Block 0 may be away from 20 to 80, and block 1 lives from 30 to 70: 100 bytes go out in 10 ns, and come back.
TEST(Bounds, TheFasterTheCopiesTheLessIsNeeded) {
  auto plan = testing::two_blocks();
  const Lives lives = find_lives(plan.problem);
  EXPECT_NEAR(*least_footprint(plan.problem, lives, fine()), 100, 1e-3);
  plan.problem.machine = {5, 10, 0, 0};  // 50 bytes are out when block 1 is allocated
  EXPECT_NEAR(*least_footprint(plan.problem, lives, fine()), 150, 1e-3);
  plan.problem.machine = {10, 2, 0, 0};  // from 60 on, when block 1 may give up its bytes, 40 bytes come back
  EXPECT_NEAR(*least_footprint(plan.problem, lives, fine()), 160, 1e-3);
}

TEST(Bounds, AddedTimeIsThatOfTheSlowerCopies) {
  auto plan = testing::two_blocks();
  const Lives lives = find_lives(plan.problem);
  plan.problem.machine = {5, 10, 0, 0};
  EXPECT_NEAR(*least_added_time(plan.problem, lives, 150, fine()), 0, 1e-6);
  EXPECT_NEAR(*least_added_time(plan.problem, lives, 100, fine()), 10, 1e-3);
}

TEST(Bounds, NothingFitsBelowTheLargestAccess) {
  auto plan = testing::two_blocks();
  const Lives lives = find_lives(plan.problem);
  EXPECT_EQ(*least_added_time(plan.problem, lives, 99, fine()), std::numeric_limits<double>::infinity());
}

TEST(Bounds, WhatIsPinnedStays) {
  auto plan = testing::two_blocks();
  plan.problem.blocks[0].pinned = true;
  EXPECT_NEAR(*least_footprint(plan.problem, find_lives(plan.problem), fine()), 200, 1e-3);
}

TEST(Bounds, SmallBlocksCountAsAway) {
  const auto plan = testing::two_blocks();
  EXPECT_NEAR(*least_footprint(plan.problem, find_lives(plan.problem), {.intervals = 8, .least_bytes = 101}), 100,
              1e-3);
}

}  // namespace
}  // namespace memopt::swap
