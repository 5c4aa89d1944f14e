// Batches of another size than planned.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "tests/agent/memory/followed_thread.h"

namespace memopt::agent {
namespace {

// What depends on the batch is smaller by the same factor, or by its square, and gradients are as large as ever.
TEST(FollowerBatches, ASmallerBatchIsFollowed) {
  FollowedPlan plan = plan_of({9000, 1000, 80000, 16384, 64000, 5000, 24000, 70000}, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {24000, 70000, 9000, 1000}, {-1, -1, 0, 1});
  expect_followed(plan, thread, {40000, 8192, 16000, 5000, 12000, 70000}, {-1, -1, 4, 5, 6, 7});
  // Behind the end of the iteration smaller ones are not expected any more.
  expect_followed(plan, thread, {9000, 1000, 40000, 16384, 64000}, {0, 1, -1, -1, 4});
  // One that is larger than planned is off the plan, as ever, and so is what is far too small.
  expect_followed(plan, thread, {5000, 24000, 70000, 4500, 500, 40000, 16385, 32000}, {5, 6, 7, -1, -1, 2, -1, -1});
  expect_followed(plan, thread, {5000, 24000, 70000, 4500, 500, 40000, 4000, 32000}, {-1, -1, 7, -1, -1, 2, -1, -1});
}

// It is off the plan to the end of the iteration, also what is as large as planned: then the next one begins.
TEST(FollowerBatches, ALargerBatchIsOffThePlan) {
  FollowedPlan plan = plan_of({9000, 1000, 80000, 16384, 64000, 5000, 24000, 70000}, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {24000, 70000, 9000, 1000}, {-1, -1, 0, 1});
  expect_followed(plan, thread, {160000, 32768, 256000, 5000, 24000, 70000}, {-1, -1, -1, -1, -1, -1});
  EXPECT_TRUE(thread.at.following);
  expect_followed(plan, thread, {9000, 1000, 80000}, {0, 1, 2});
}

// What one lane has found out of the iteration the others know: autograd's thread begins with large blocks.
TEST(FollowerBatches, TheOtherLanesKnowOfASmallerBatch) {
  Plan plan;
  plan.generation = 1;
  plan.operations = 100;
  for (std::uint32_t i = 0; i < 8; ++i) {
    plan.mallocs.push_back({10000u + 512 * i, kCaller, i, 1, 2 * i, 2 * i + 1});
    plan.places.push_back({i * 32768u, 32768});
  }
  plan.lanes.push_back({0, 1, std::span(plan.mallocs).first(4)});
  plan.lanes.push_back({1, 1, std::span(plan.mallocs).last(4)});
  FollowedPlan followed(plan);
  Thread first(followed), second(followed);
  second.at.lane = followed.find_lane(1);
  const auto half = [&](std::uint64_t i) { return plan.mallocs[static_cast<std::size_t>(i)].bytes / 2; };
  first.malloc(plan.mallocs[3].bytes);
  second.malloc(plan.mallocs[7].bytes);
  EXPECT_EQ(first.malloc(half(0)), Step::kLeaves);
  EXPECT_EQ(first.malloc(half(1)), Step::kOff);
  EXPECT_EQ(first.malloc(half(2)), Step::kRejoins);
  EXPECT_EQ(second.malloc(half(4)), Step::kFollows);
  EXPECT_EQ(second.malloc(half(5)), Step::kFollows);
  EXPECT_EQ(first.malloc(half(3)), Step::kFollows) << "the iteration ends";
  EXPECT_EQ(second.malloc(half(6)), Step::kFollows) << "this lane's does not";
  EXPECT_EQ(second.malloc(half(7)), Step::kFollows);
  EXPECT_EQ(first.malloc(plan.mallocs[0].bytes), Step::kFollows);
  EXPECT_EQ(second.malloc(half(4)), Step::kLeaves) << "the next one is not known to be smaller";
}

TEST(FollowerBatches, AFewSmallerMallocsAreNoSmallerBatch) {
  FollowedPlan plan = plan_of({8192, 8192, 8192, 8192, 8192, 4096}, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {8192, 4096, 8192}, {-1, -1, 0});
  // Scalars that are logged, before what is planned goes on; others, by no common factor.
  expect_followed(plan, thread, {512, 8192, 8192, 8192}, {-1, 1, 2, 3});
  expect_followed(plan, thread, {7000, 1000, 100, 8192, 4096}, {-1, -1, -1, 4, 5});
}

TEST(FollowerBatches, ScalarsAreNoSmallerBatch) {
  FollowedPlan plan = plan_of({1 << 20, 2 << 20, 2 << 20, 2 << 20, 2 << 20, 3 << 20}, 1);
  Thread thread(plan);
  expect_followed(plan, thread, {3 << 20, 1 << 20, 512, 512, 512, 2 << 20, 2 << 20, 2 << 20, 2 << 20, 3 << 20},
                  {-1, 0, -1, -1, -1, 1, 2, 3, 4, 5});
}

TEST(FollowerBatches, BlocksThatAreSwappedAreAsLargeAsPlanned) {
  Plan plan;
  plan.generation = 1;
  plan.operations = 8;
  for (std::uint32_t i = 0; i < 4; ++i) {
    plan.mallocs.push_back({4096u * (i + 1) + 512, kCaller, i, 1, 2 * i, 2 * i + 1});
    plan.places.push_back({i * 32768u, 32768});
  }
  plan.lanes.push_back({0, 1, std::span(plan.mallocs)});
  for (const bool swaps : {false, true}) {
    if (swaps) plan.swaps.push_back({0, 0, 0, 4, 5, 0});
    FollowedPlan followed(plan);
    Thread thread(followed);
    expect_followed(followed, thread, {16896, 2304, 4352, 6400, 8448}, {-1, -1, -1, swaps ? -1 : 2, swaps ? -1 : 3});
  }
}

}  // namespace
}  // namespace memopt::agent
