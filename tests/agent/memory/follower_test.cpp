#include "agent/memory/follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/agent/memory/followed_thread.h"

namespace memopt::agent {
namespace {

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

// Autograd's thread makes more, as a rule, and begins in the middle.
TEST(Follower, AnIterationBeginsWithTheLaneThatIsBornFirst) {
  Plan plan;
  plan.operations = 10;
  for (const std::uint32_t born : {1u, 8u, 3u, 4u, 5u}) plan.mallocs.push_back({512, kCaller, 0, 0, born, born + 1});
  plan.lanes.push_back({0, 1, std::span(plan.mallocs).first(2)});
  plan.lanes.push_back({1, 1, std::span(plan.mallocs).subspan(2)});
  const FollowedPlan followed(plan);
  EXPECT_TRUE(followed.lanes[0].first);
  EXPECT_FALSE(followed.lanes[0].main);
  EXPECT_FALSE(followed.lanes[1].first);
  EXPECT_TRUE(followed.lanes[1].main);
}

TEST(Follower, ReturnAddressesCount) {
  FollowedPlan plan = plan_of({10, 20, 30}, 1);
  Thread thread(plan);
  thread.malloc(30);
  EXPECT_EQ(thread.malloc(10, kCaller + 8), Step::kLeaves);
  EXPECT_EQ(thread.malloc(20), Step::kOff);
}

TEST(Follower, OneMoreIsOffThePlanAlone) {
  FollowedPlan plan = plan_of({10, 20, 30, 40}, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {30, 40, 10, 99, 20, 30, 40, 10}, {-1, -1, 0, -1, 1, 2, 3, 0});
  expect_followed(plan, thread, {98, 97, 96, 20, 30, 40, 95, 10}, {-1, -1, -1, 1, 2, 3, -1, 0});
}

TEST(Follower, BehindOneThatIsLeftOutTwoHaveToFit) {
  FollowedPlan plan = plan_of({10, 20, 30, 40, 50, 60}, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {50, 60, 10, 30, 40, 50, 60, 10}, {-1, -1, 0, -1, 3, 4, 5, 0});
  // One of another size instead, as those of a smaller batch.
  expect_followed(plan, thread, {20, 29, 40, 50, 60, 10}, {1, -1, -1, 4, 5, 0});
}

TEST(Follower, WithoutTheEndOfAnIterationTheNextOneIsFollowed) {
  FollowedPlan plan = plan_of({10, 20, 30, 40, 50, 60}, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {50, 60, 10, 20, 30, 40, 50}, {-1, -1, 0, 1, 2, 3, 4});
  EXPECT_EQ(thread.malloc(10), Step::kLeaves);
  EXPECT_EQ(thread.malloc(20), Step::kRejoins);
  EXPECT_TRUE(begins_behind(thread.at));
  EXPECT_EQ(thread.at.left, 5u);
  EXPECT_EQ(thread.at.rejoined, 1u);
  expect_followed(plan, thread, {30, 40, 50, 60, 10}, {2, 3, 4, 5, 0});
  EXPECT_EQ(thread.malloc(30), Step::kLeaves);
  EXPECT_EQ(thread.malloc(40), Step::kRejoins);
  EXPECT_FALSE(begins_behind(thread.at));
}

TEST(Follower, FarAheadMoreHaveToFit) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 1; i <= 200; ++i) sizes.push_back(10 * i);
  FollowedPlan plan = plan_of(sizes, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {1990, 2000, 10, 20}, {-1, -1, 0, 1});
  expect_followed(plan, thread, {310, 320, 330, 340, 350}, {-1, -1, -1, 33, 34});  // 28 to 31 ahead
  expect_followed(plan, thread, {1510, 1520, 1530, 1540, 1550, 1560, 1570, 1580, 1590},
                  {-1, -1, -1, -1, -1, -1, -1, 157, 158});
}

// Layers of which one is like the other: what is left out makes it follow the next one, not any.
TEST(Follower, OfLayersThatAreAlikeTheNextOneIsTaken) {
  FollowedPlan plan = plan_of({1, 10, 20, 30, 10, 20, 30, 10, 20, 30, 2}, 1);
  Thread thread(plan);
  expect_followed(plan, thread, {2, 1, 10, 20, 10, 20, 30, 10, 20, 30, 2, 1}, {-1, 0, 1, 2, -1, 5, 6, 7, 8, 9, 10, 0});
}

TEST(Follower, WhatIsGoneAgainAtOnceIsFoundByMore) {
  FollowedPlan plan = plan_of({10, 20, 30, 40, 50, 60, 70, 80}, 2);
  Thread thread(plan);
  // Nothing of the plan but a size now and then.
  expect_followed(plan, thread, {70, 80, 10, 99, 20, 98, 30, 97, 40, 96, 50},
                  {-1, -1, 0, -1, 1, -1, -1, -1, -1, -1, -1});
  expect_followed(plan, thread, {60, 70, 80, 10}, {-1, 6, 7, 0});
}

// A loop in an iteration whose rest makes the last malloc of the loop's now and then.
TEST(Follower, AnEndThatIsMadeElsewhereIsNoEnd) {
  FollowedPlan plan = plan_of({10, 20, 30, 40, 50}, 1);
  Thread thread(plan);
  std::size_t back = 0;
  for (int step = 0; step < 20; ++step) {
    for (int i = 0; i < 6; ++i) {
      for (const std::uint64_t size : {10, 20, 30, 40, 50}) thread.malloc(size);
      // Each time, by the second at the latest.
      if (i > 0) {
        EXPECT_TRUE(thread.at.following) << step << " " << i;
      }
    }
    for (std::uint64_t i = 0; i < 100; ++i) {
      thread.malloc(1000 + i % 3);
      back += thread.malloc(50) != Step::kOff && thread.at.following ? 1 : 0;
    }
  }
  // Far from it, where one was enough.
  EXPECT_LE(back, 20u);
}

TEST(Follower, AfterManyOnlyBeginningsAreLookedFor) {
  FollowedPlan plan = plan_of({10, 20, 30, 40, 50, 60}, 2);
  Thread thread(plan);
  expect_followed(plan, thread, {50, 60, 10, 20}, {-1, -1, 0, 1});
  for (std::uint32_t i = 0; i < LanePosition::kLost; ++i) thread.malloc(1000 + i);
  expect_followed(plan, thread, {30, 40, 50, 60, 10}, {-1, -1, -1, -1, 0});
  EXPECT_EQ(thread.at.left, LanePosition::kNowhere);
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
  EXPECT_EQ(thread.malloc(10), Step::kRejoins);
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

// A lane of as many rounds as there are gaps: so many mallocs each, so many operations before the first, one between
// them.
struct Rounds {
  explicit Rounds(std::vector<std::uint64_t> its_gaps, std::uint32_t mallocs = 2)
      : gaps(std::move(its_gaps)), length(mallocs) {
    plan.generation = 1;
    plan.operations = 100;
    for (std::uint32_t i = 0; i < length * gaps.size(); ++i) {
      plan.mallocs.push_back(
          {10 + i % length, kCaller, i, 1, 2 * i, 2 * i + 1, i % length == 0 ? gaps[i / length] : 1});
      plan.places.push_back({i * 512u, 512});
    }
    plan.lanes.push_back({0, 1, std::span(plan.mallocs), gaps.size()});
  }
  // The malloc as which the program's next one is taken; -1: none. `more` operations lie before it than are planned.
  int next(Thread& thread, std::uint64_t malloc, int more = 0) const {
    const auto gap = malloc % length == 0 ? gaps[malloc / length % gaps.size()] : 1;
    thread.queued += static_cast<std::uint32_t>(static_cast<int>(gap) + more);
    const Step step = thread.malloc(10 + malloc % length);
    const bool follows = step == Step::kFollows || step == Step::kRejoins;
    return follows ? static_cast<int>(thread.expected - thread.at.lane->mallocs.data()) : -1;
  }

  std::vector<std::uint64_t> gaps;
  std::uint32_t length;
  Plan plan;
};

TEST(Follower, RoundsAreToldByTheOperationsBetweenThem) {
  const Rounds rounds({9, 2, 2});
  FollowedPlan followed(rounds.plan);
  EXPECT_EQ(followed.lanes[0].rounds, 3u);
  EXPECT_EQ(followed.lanes[0].alike, 1u);
  Thread thread(followed);
  // From the middle of an iteration on: the second round might be the third.
  for (std::uint64_t malloc = 3; malloc < 6; ++malloc) EXPECT_EQ(rounds.next(thread, malloc), -1) << malloc;
  for (std::uint64_t malloc = 0; malloc < 12; ++malloc) {
    EXPECT_EQ(rounds.next(thread, malloc), static_cast<int>(malloc % 6)) << malloc;
  }
  // Something else comes between.
  EXPECT_EQ(rounds.next(thread, 0, 5), 0);
  EXPECT_EQ(rounds.next(thread, 1), 1);
  EXPECT_EQ(rounds.next(thread, 2, 1), 2);
  EXPECT_EQ(rounds.next(thread, 3), 3);
  // A round is left out: it is noticed where the next iteration begins.
  for (std::uint64_t malloc = 0; malloc < 6; ++malloc) EXPECT_EQ(rounds.next(thread, malloc), static_cast<int>(malloc));
}

// An evaluation, say. Which malloc comes next is known, and two of the plan tell that it has come.
TEST(Follower, ARoundGoesOnBehindManyOffThePlan) {
  const Rounds rounds({9, 2, 2}, 4);
  for (const std::uint64_t left : {1u, 5u, 8u, 9u}) {
    FollowedPlan followed(rounds.plan);
    Thread thread(followed);
    rounds.next(thread, 11);
    for (std::uint64_t malloc = 0; malloc < left; ++malloc) {
      ASSERT_EQ(rounds.next(thread, malloc), static_cast<int>(malloc));
    }
    for (int i = 0; i < 20; ++i) {
      ++thread.queued;
      thread.malloc(99);
    }
    EXPECT_EQ(rounds.next(thread, left), -1);
    for (std::uint64_t malloc = left + 1; malloc < 24; ++malloc) {
      EXPECT_EQ(rounds.next(thread, malloc), static_cast<int>(malloc % 12)) << left << " " << malloc;
    }
  }
}

TEST(Follower, RoundsOfSeveralIterationsAreToldAsFarAsTheyDiffer) {
  const Rounds rounds({9, 2, 2, 9, 2, 2});
  FollowedPlan followed(rounds.plan);
  EXPECT_EQ(followed.lanes[0].alike, 2u);
  Thread thread(followed);
  for (std::uint64_t malloc = 3; malloc < 6; ++malloc) EXPECT_EQ(rounds.next(thread, malloc), -1) << malloc;
  // Which of the two iterations comes first is the same.
  for (std::uint64_t malloc = 0; malloc < 24; ++malloc) {
    EXPECT_EQ(rounds.next(thread, malloc), static_cast<int>(malloc % 12)) << malloc;
  }
  // Where a round is left out the next one of either is taken.
  for (std::uint64_t malloc = 0; malloc < 4; ++malloc) EXPECT_EQ(rounds.next(thread, malloc), static_cast<int>(malloc));
  for (std::uint64_t malloc = 0; malloc < 6; ++malloc) {
    EXPECT_EQ(rounds.next(thread, malloc), static_cast<int>(malloc + 6));
  }
}

TEST(Follower, RoundsThatNothingTellsAreTakenAsTheyCome) {
  for (const std::vector<std::uint64_t>& gaps :
       {std::vector<std::uint64_t>{2, 2}, {2, 2, 3, 3}, {shm::kNoGap, shm::kNoGap}}) {
    const Rounds rounds(gaps);
    FollowedPlan followed(rounds.plan);
    EXPECT_TRUE(followed.lanes[0].gaps.empty());
    EXPECT_FALSE(followed.lanes[0].is_told);
    EXPECT_EQ(followed.lanes[0].alike, gaps.size());
  }
}

// From its first beginning of an iteration on, and one iteration behind whatever it did instead, a thread is taken for
// where it is.
TEST(Follower, RoundsAreFoundAgainAfterDeviations) {
  std::mt19937_64 random(7);
  for (int times = 0; times < 300; ++times) {
    std::vector<std::uint64_t> gaps(2 + random() % 4);
    for (std::uint64_t& gap : gaps) gap = 1 + random() % 3;
    gaps[random() % gaps.size()] = 8;
    const Rounds rounds(gaps);
    FollowedPlan followed(rounds.plan);
    Thread thread(followed);
    const std::uint64_t count = 2 * gaps.size();
    std::uint64_t malloc = random() % count;
    std::uint64_t undisturbed = 0;  // mallocs
    for (int step = 0; step < 200; ++step) {
      switch (random() % 40) {
        case 0:  // other allocations, and what they are for
          for (std::uint64_t i = 1 + random() % 3; i != 0; --i) {
            ++thread.queued;
            thread.malloc(99);
          }
          undisturbed = 0;
          break;
        case 1:  // a round less
          if (malloc % 2 == 0) malloc += 2;
          undisturbed = 0;
          break;
        case 2:
          thread.queued += static_cast<std::uint32_t>(random() % 20);
          undisturbed = 0;
          break;
        default: {
          const int taken = rounds.next(thread, malloc);
          if (undisturbed >= 2 * count) {
            ASSERT_EQ(taken, static_cast<int>(malloc % count)) << times << " " << step;
          }
          ++malloc;
          ++undisturbed;
        }
      }
    }
  }
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
