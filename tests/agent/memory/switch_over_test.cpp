// Which chunks may serve where when a plan goes live: against all possible ways, and against an iteration played twice.
#include "agent/memory/switch_over.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/agent/plan_builder.h"

namespace memopt::agent {
namespace {

FollowedPlan followed(const test::PlanBuilder& builder) {
  std::string error;
  const std::unique_ptr<const Plan> plan = parse_plan(builder.bytes(), &error);
  EXPECT_NE(plan, nullptr) << error;
  return FollowedPlan(*plan);
}

// The most that can have a slot, by trying all orders of the chunks.
std::size_t most(std::vector<std::uint64_t> freed, const std::vector<std::uint64_t>& used) {
  std::sort(freed.begin(), freed.end());
  std::size_t best = 0;
  do {
    std::vector<bool> taken(used.size());
    std::size_t count = 0;
    for (const std::uint64_t time : freed) {
      // The one that is used first of those that fit leaves most for the others.
      std::size_t chosen = kNoSlot;
      for (std::size_t slot = 0; slot < used.size(); ++slot) {
        if (!taken[slot] && time < used[slot] && (chosen == kNoSlot || used[slot] < used[chosen])) chosen = slot;
      }
      if (chosen == kNoSlot) continue;
      taken[chosen] = true;
      ++count;
    }
    best = std::max(best, count);
  } while (std::next_permutation(freed.begin(), freed.end()));
  return best;
}

TEST(SwitchOver, AsManyChunksAsPossibleHaveASlotInTime) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> freed(random() % 6), used(random() % 7);
    for (std::uint64_t& time : freed) time = random() % 4 == 0 ? kNeverInPlan : random() % 10;
    for (std::uint64_t& time : used) time = random() % 4 == 0 ? kNeverInPlan : random() % 10;
    std::vector<LentChunk> chunks;
    std::vector<SlotInTime> slots;
    for (std::size_t i = 0; i < freed.size(); ++i) chunks.push_back({freed[i], i});
    for (std::size_t i = 0; i < used.size(); ++i) slots.push_back({used[i], i});
    const std::vector<std::size_t> matched = match_slots(chunks, slots, freed.size());
    ASSERT_EQ(matched.size(), freed.size());
    std::vector<std::size_t> given;
    for (std::size_t i = 0; i < matched.size(); ++i) {
      if (matched[i] == kNoSlot) continue;
      ASSERT_LT(matched[i], used.size());
      ASSERT_LT(freed[i], used[matched[i]]) << "its slot is used while a block lies in it";
      given.push_back(matched[i]);
    }
    std::sort(given.begin(), given.end());
    ASSERT_EQ(std::adjacent_find(given.begin(), given.end()), given.end()) << "a slot twice";
    ASSERT_EQ(given.size(), most(freed, used));
  }
}

// The small plan: 20 operations; its blocks of 2048 bytes live for 21 from operation 7 on, in two places by turns, and
// those of 512 bytes from 15 to 22.
TEST(SwitchOver, SlotsAreUsedWhenTheFirstBlockIsPlacedThere) {
  const FollowedPlan plan = followed(test::PlanBuilder::small());
  const std::vector<std::uint64_t> by_kib = first_uses(plan, 1024);
  ASSERT_EQ(by_kib.size(), 16u);
  EXPECT_EQ(by_kib[0], 0u);
  EXPECT_EQ(by_kib[1], 2u) << "and by another at 15";
  EXPECT_EQ(by_kib[2], kNeverInPlan);
  EXPECT_EQ(by_kib[8], 7u);
  EXPECT_EQ(by_kib[9], 7u);
  EXPECT_EQ(by_kib[10], 27u) << "the second place serves in the second iteration";
  EXPECT_EQ(by_kib[11], 27u);
  EXPECT_EQ(by_kib[12], kNeverInPlan);
  const std::vector<std::uint64_t> large = first_uses(plan, 10 * 1024);
  EXPECT_EQ(large, (std::vector<std::uint64_t>{0, 27}));
}

// A pool of two places: of a block that lives until 5 in the next iteration, and of one that lies in the other place
// when that is free. Which of them is asked for in the place of the block of before does not matter: one is free.
TEST(SwitchOver, PlacesThatMallocsShareAreNeededAsTheirBlocksAreLive) {
  test::PlanBuilder builder = test::PlanBuilder::small();
  builder.mallocs[3].born = 2;
  builder.mallocs[3].freed = 25;
  builder.mallocs[4] = builder.mallocs[3];
  builder.mallocs[4].born = 7;
  builder.mallocs[4].freed = 19;
  const FollowedPlan with_both = followed(builder);
  const std::size_t first = builder.mallocs[3].first_place;
  EXPECT_EQ(with_both.first_needed[first], 2u);
  EXPECT_EQ(with_both.first_needed[first + 1], 7u);
  builder.mallocs[4].born = 0;
  builder.mallocs[4].freed = 1;
  const FollowedPlan apart = followed(builder);
  EXPECT_EQ(apart.first_needed[first], 0u);
  EXPECT_EQ(apart.first_needed[first + 1], 20u) << "with the first block of the second iteration";
}

TEST(SwitchOver, BlocksThatCrossAreFreedWhenThePlanSays) {
  const FollowedPlan plan = followed(test::PlanBuilder::small());
  const auto times = freed_times(plan, {{2048, 70}, {512, 60}, {512, 61}, {1000, 80}, {2048, 71}, {9, 90}});
  EXPECT_EQ(times.size(), 2u);
  EXPECT_EQ(times.at(71), 8u) << "the younger one; the other should not be there";
  EXPECT_EQ(times.at(61), 2u);
}

TEST(SwitchOver, OfBlocksThatLiveForSeveralIterationsEachHasItsTime) {
  test::PlanBuilder builder = test::PlanBuilder::small();
  builder.mallocs[3].freed = 55;  // made at 7: alive at 20 and 40, so that two are there at each beginning
  builder.mallocs[3].places = 3;
  builder.places.insert(builder.places.begin() + 5, {12288, 2048});
  builder.mallocs[4].first_place = 6;
  const FollowedPlan plan = followed(builder);
  const auto times = freed_times(plan, {{2048, 5}, {2048, 9}});
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times.at(9), 35u) << "made in the last iteration";
  EXPECT_EQ(times.at(5), 15u);
}

}  // namespace
}  // namespace memopt::agent
