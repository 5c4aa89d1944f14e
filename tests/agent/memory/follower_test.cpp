#include "agent/memory/follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kCaller = 0x1000;

// A plan of one lane; each malloc has one place, but for those of size 0 mod 7, which are not planned.
FollowedPlan plan_of(const std::vector<std::uint64_t>& sizes, std::uint32_t match) {
  Plan plan;
  plan.generation = 1;
  for (const std::uint64_t size : sizes) {
    plan.mallocs.push_back({size, kCaller, plan.places.size(), 1, 0, 1});
    plan.places.push_back({plan.places.size() * 512, 512});
  }
  plan.lanes.push_back({0, match, std::span(plan.mallocs)});
  return FollowedPlan(plan);
}

struct Thread {
  explicit Thread(FollowedPlan& plan) {
    at.plan = plan.generation;
    at.lane = plan.find_lane(0);
  }
  Step malloc(std::uint64_t size, std::uint64_t caller = kCaller) {
    expected = nullptr;
    return expect(at, size, caller, &expected);
  }
  LanePosition at;
  FollowedMalloc* expected = nullptr;
};

TEST(Follower, BeginsAfterTheEndOfAnIteration) {
  FollowedPlan plan = plan_of({10, 20, 30}, 1);
  Thread thread(plan);
  EXPECT_EQ(thread.malloc(10), Step::kOff);
  EXPECT_EQ(thread.malloc(30), Step::kOff);
  EXPECT_EQ(thread.malloc(10), Step::kFollows);
  EXPECT_EQ(thread.expected->bytes, 10u);
  EXPECT_EQ(thread.malloc(20), Step::kFollows);
  EXPECT_EQ(thread.malloc(30), Step::kFollows);
  EXPECT_EQ(thread.malloc(10), Step::kFollows) << "the next iteration begins";
}

TEST(Follower, ReturnAddressesCount) {
  FollowedPlan plan = plan_of({10, 20, 30}, 1);
  Thread thread(plan);
  thread.malloc(30);
  EXPECT_EQ(thread.malloc(10, kCaller + 8), Step::kLeaves);
  EXPECT_EQ(thread.malloc(20), Step::kOff);
}

TEST(Follower, ReturnsAtTheNextIterationAfterADeviation) {
  FollowedPlan plan = plan_of({10, 20, 30, 40}, 2);
  Thread thread(plan);
  for (const std::uint64_t size : {30, 40}) thread.malloc(size);
  EXPECT_EQ(thread.malloc(10), Step::kFollows);
  EXPECT_EQ(thread.malloc(99), Step::kLeaves);
  for (const std::uint64_t size : {20, 30, 40}) EXPECT_EQ(thread.malloc(size), Step::kOff) << size;
  EXPECT_EQ(thread.malloc(10), Step::kFollows);
}

TEST(Follower, WhatWasFollowedCountsTowardsTheEnd) {
  // Left in the middle of 40, 10: the 40 was still on the plan.
  FollowedPlan plan = plan_of({20, 30, 40, 10}, 2);
  Thread thread(plan);
  thread.malloc(40);
  thread.malloc(10);
  for (const std::uint64_t size : {20, 30, 40}) ASSERT_EQ(thread.malloc(size), Step::kFollows);
  // One malloc too many, and then the end of the iteration once more.
  EXPECT_EQ(thread.malloc(40), Step::kLeaves);
  EXPECT_EQ(thread.malloc(10), Step::kOff);
  EXPECT_EQ(thread.malloc(20), Step::kFollows);
}

TEST(Follower, PlacesAreUsedInTurn) {
  Plan plan;
  plan.generation = 1;
  plan.mallocs.push_back({10, kCaller, 0, 2, 0, 1});
  plan.places.push_back({0, 512});
  plan.places.push_back({512, 512});
  plan.lanes.push_back({0, 1, std::span(plan.mallocs)});
  FollowedPlan followed(plan);
  Thread thread(followed);
  thread.malloc(10);
  std::vector<std::uint64_t> begins;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(thread.malloc(10), Step::kFollows);
    begins.push_back(thread.expected->next_place()->begin);
  }
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{0, 512, 0, 512}));
}

// Two lanes of a plan: one that is told by its sizes, and one whose mallocs are all alike, each after one of the first.
struct TwoLanes {
  TwoLanes() {
    plan.generation = 1;
    plan.operations = 8;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const bool second = i >= 4;
      plan.mallocs.push_back({second ? 50u : 10u + i, kCaller, i, 1, second ? 2 * (i - 4) + 1 : 2 * i, 2 * i + 1});
      plan.places.push_back({i * 512u, 512});
    }
    plan.lanes.push_back({0, 1, std::span(plan.mallocs).first(4), 1});
    plan.lanes.push_back({1, 1, std::span(plan.mallocs).last(4), 4});
  }
  Plan plan;
};

TEST(Follower, MallocsThatAreAlikeAreToldByTheOtherLane) {
  TwoLanes two;
  FollowedPlan followed(two.plan);
  Thread first(followed), second(followed);
  second.at.lane = followed.find_lane(1);
  const auto place_of = [](Thread& thread) { return thread.expected->next_place()->begin / 512; };
  EXPECT_EQ(first.malloc(13), Step::kOff);
  EXPECT_EQ(first.malloc(10), Step::kFollows);
  EXPECT_EQ(first.malloc(11), Step::kFollows);
  EXPECT_EQ(second.malloc(50), Step::kOff);  // one of the four
  EXPECT_EQ(first.malloc(12), Step::kFollows);
  ASSERT_EQ(second.malloc(50), Step::kFollows);
  EXPECT_EQ(place_of(second), 6u);
  EXPECT_EQ(first.malloc(13), Step::kFollows);
  ASSERT_EQ(second.malloc(50), Step::kFollows);
  EXPECT_EQ(place_of(second), 7u);
  // The next iteration, in which one is left out.
  EXPECT_EQ(first.malloc(10), Step::kFollows);
  EXPECT_EQ(first.malloc(11), Step::kFollows);
  ASSERT_EQ(second.malloc(50), Step::kFollows);
  EXPECT_EQ(place_of(second), 5u);
  // Where the other lane has left the plan, it goes on as it was.
  EXPECT_EQ(first.malloc(99), Step::kLeaves);
  ASSERT_EQ(second.malloc(50), Step::kFollows);
  EXPECT_EQ(place_of(second), 6u);
}

TEST(Follower, MallocsShareTheTurnsOfAPool) {
  Plan plan;
  plan.generation = 1;
  for (std::uint64_t i = 0; i < 2; ++i) {
    plan.mallocs.push_back({10 + i, kCaller, 0, 3, 0, 1});
  }
  for (std::uint64_t i = 0; i < 3; ++i) plan.places.push_back({i * 512, 512});
  plan.lanes.push_back({0, 1, std::span(plan.mallocs)});
  FollowedPlan followed(plan);
  Thread thread(followed);
  thread.malloc(11);
  std::vector<std::uint64_t> begins;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(thread.malloc(10 + i % 2), Step::kFollows);
    begins.push_back(thread.expected->next_place()->begin);
  }
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{0, 512, 1024, 0}));
}

// Against a follower that keeps the whole history and looks at it from behind.
class FollowerModel : public testing::TestWithParam<unsigned> {};

TEST_P(FollowerModel, AgreesWithALookAtTheWholeHistory) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> sizes(1 + random() % 8);
    for (std::uint64_t& size : sizes) size = 1 + random() % 3;
    const auto match = static_cast<std::uint32_t>(1 + random() % sizes.size());
    FollowedPlan plan = plan_of(sizes, match);
    Thread thread(plan);
    const std::vector<std::uint64_t> end(sizes.end() - match, sizes.end());
    std::vector<std::uint64_t> history;
    bool following = false;
    std::size_t position = 0;
    for (int step = 0; step < 200; ++step) {
      const bool as_planned = following ? random() % 10 != 0 : random() % 3 != 0;
      const std::uint64_t size =
          as_planned ? sizes[following ? position : static_cast<std::size_t>(step) % sizes.size()] : 1 + random() % 3;
      history.push_back(size);
      Step expected = Step::kOff;
      if (following && sizes[position] == size) {
        expected = Step::kFollows;
        position = (position + 1) % sizes.size();
      } else {
        if (following) expected = Step::kLeaves;
        following = history.size() >= end.size() && std::equal(end.rbegin(), end.rend(), history.rbegin());
        position = 0;
      }
      ASSERT_EQ(thread.malloc(size), expected) << "round " << round << " step " << step;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, FollowerModel, testing::Range(1u, 9u));

// Two lanes that stand in the plan in another order than by number. Lane 1 makes 10 (rank 0) and 20 (4), lane 0 makes
// 30 (2); ten operations.
FollowedPlan swapping_plan(const std::vector<shm::PlannedSwap>& swaps, const std::vector<shm::PlannedPoint>& points) {
  Plan plan;
  plan.generation = 1;
  plan.operations = 10;
  plan.mallocs = {{10, kCaller, 0, 1, 0, 9}, {20, kCaller, 1, 1, 4, 12}, {30, kCaller, 2, 1, 2, 8}};
  plan.places = {{0, 512}, {512, 512}, {1024, 512}};
  const std::span<const shm::PlannedMalloc> mallocs(plan.mallocs);
  plan.lanes.push_back({0, 1, mallocs.subspan(2, 1)});
  plan.lanes.push_back({1, 1, mallocs.subspan(0, 2)});
  plan.swaps = swaps;
  plan.points = points;
  return FollowedPlan(plan);
}

TEST(FollowedSwaps, AreStepsOfThePointsAtWhichTheyAreMade) {
  const FollowedPlan plan =
      swapping_plan({{0, shm::kSwapCopies, 1, 6, 7, 0}, {2, shm::kSwapCopies, 3, 6, 7, 1}},
                    {{1, 1, 0, 1, 0}, {3, 0, 0, 1, 0}, {6, 1, 1, 2, shm::kPointUncounted}, {7, 1, 1, 3, 0}});
  EXPECT_EQ(plan.swaps, 2u);
  ASSERT_EQ(plan.swapped.size(), 2u);
  ASSERT_EQ(plan.lanes.size(), 2u);
  EXPECT_EQ(plan.lanes[0].mallocs[0].swapped, &plan.swapped[1]) << "that of 30 bytes";
  EXPECT_EQ(plan.lanes[1].mallocs[0].swapped, &plan.swapped[0]);
  EXPECT_EQ(plan.lanes[1].mallocs[1].swapped, nullptr);
  ASSERT_EQ(plan.lanes[0].points.size(), 1u);
  ASSERT_EQ(plan.lanes[1].points.size(), 2u) << "nothing is done at the operation that waits";
  const SwapPoint& free = plan.lanes[1].points[1];
  EXPECT_EQ(free.malloc, 1u);
  EXPECT_EQ(free.operations, 2u);
  EXPECT_TRUE(free.behind_free);
  ASSERT_EQ(free.steps, 2u);
  EXPECT_EQ(plan.steps[free.first_step].swapped, 0u) << "by the plan's order";
  EXPECT_FALSE(plan.steps[free.first_step].leaves);
  EXPECT_EQ(plan.steps[free.first_step + 1].swapped, 1u);
  EXPECT_TRUE(plan.steps[plan.lanes[0].points[0].first_step].leaves);
  EXPECT_EQ(plan.lanes[1].first_point, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(plan.lanes[0].first_point, (std::vector<std::uint32_t>{0, 1}));
}

TEST(FollowedSwaps, NameTheBlockThatWasMadeSoManyBefore) {
  // The malloc at 4 lives until 12. Behind rank 5 it is the last one made; behind 11, rank 1 of the next iteration, it
  // is so still; behind 15 another one has been made at 14.
  const FollowedPlan plan = swapping_plan({{1, shm::kSwapCopies, 5, 11, 12, 0}, {1, shm::kSwapCopies, 12, 15, 16, 1}},
                                          {{1, 1, 0, 1, 0}, {2, 1, 0, 2, 0}, {5, 1, 1, 1, 0}, {6, 1, 1, 2, 0}});
  std::vector<std::uint32_t> back;
  for (const SwapPoint& point : plan.lanes[1].points) {
    for (std::uint32_t i = 0; i < point.steps; ++i) back.push_back(plan.steps[point.first_step + i].back);
  }
  EXPECT_EQ(back, (std::vector<std::uint32_t>{0, 0, 0, 1})) << "of ranks 1, 2 and twice 5";
}

TEST(FollowedSwaps, ThereAreNoneInAPlanThatOnlyPlaces) {
  const FollowedPlan plan = swapping_plan({}, {});
  EXPECT_TRUE(plan.steps.empty());
  for (const FollowedLane& lane : plan.lanes) {
    EXPECT_TRUE(lane.points.empty());
    for (const FollowedMalloc& malloc : lane.mallocs) EXPECT_EQ(malloc.swapped, nullptr);
  }
}

}  // namespace
}  // namespace memopt::agent
