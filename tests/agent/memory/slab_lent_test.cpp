// Blocks that live across the switch to a plan: their chunks are lent to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/agent/memory/slab_fixture.h"

namespace memopt::agent {
namespace {

using LentTest = SlabTest;

TEST_F(LentTest, ChunksOfBlocksThatCrossTheSwitchAreTheSlabsWhenTheseAreFreed) {
  Block* const crosses = make(6 * kChunk);
  free(make(4 * kChunk));
  go_live(10 * kChunk);
  EXPECT_EQ(held(), 10 * kChunk) << "none is made";
  EXPECT_EQ(slab.lent_chunks(), 6u);
  EXPECT_EQ(slab.gone_chunks(), 0u);
  Block all;
  EXPECT_EQ(take(all, 0, 10 * kChunk), nullptr);
  check();
  fake.busy = true;
  free(crosses);
  EXPECT_EQ(slab.lent_chunks(), 0u);
  Span* const span = take(all, 0, 10 * kChunk);
  ASSERT_NE(span, nullptr) << "at once";
  EXPECT_FALSE(all.former.empty()) << "behind the last use";
  EXPECT_TRUE(slab.window().map.consistent());
  EXPECT_EQ(bootstrap.cached_bytes(), 0u) << "they serve nothing else";
  fake.busy = false;
  while (trim(8)) {
  }
  EXPECT_EQ(fake.mapped.size(), 20u) << "what is mapped in both costs nothing, and to unmap it does";
  EXPECT_EQ(held(), 10 * kChunk);
  slab.window().map.give_back(span, used());
  go_live(4 * kChunk);
  for (int i = 0; i < 4; ++i) {
    slab.shorten(8);
    trim(8);
  }
  EXPECT_EQ(held(), 4 * kChunk) << "what the slab has given up is unmapped where it was before";
  EXPECT_EQ(fake.mapped.size(), 8u);
}

// A block in six chunks, freed at 5, four that are free, and a slab of ten of which the first `early` are used at once.
struct CrossingTest : SlabTest {
  Block* build(std::size_t early) {
    Block* const crosses = make(6 * kChunk);
    free(make(4 * kChunk));
    EXPECT_TRUE(slab.want(10 * kChunk, [](std::uint64_t) { return false; }));
    slab.build(~std::size_t{0});
    times.first_use.assign(10, 9);
    std::fill_n(times.first_use.begin(), early, 0);
    times.freed[crosses->number] = 5;
    return crosses;
  }
  // It wants the slab again, with nothing mapped ahead.
  void forget_what_is_mapped() {
    slab.give_up_unfinished();
    ASSERT_TRUE(slab.want(10 * kChunk, [](std::uint64_t) { return false; }));
  }
  // What is used early can be had beside the block, which is still there; the rest when it is freed.
  void expect_late_when_freed(Block* crosses, std::uint64_t late_from) {
    EXPECT_NE(take(early_, 0, late_from), nullptr);
    EXPECT_EQ(take(late_, late_from, 10 * kChunk), nullptr);
    check();
    free(crosses);
    EXPECT_NE(take(late_, late_from, 10 * kChunk), nullptr);
    EXPECT_TRUE(slab.window().map.consistent());
  }
  SwitchTimes times;
  Block early_, late_;  // of the slab, until it is released
};

TEST_F(CrossingTest, LiesWhereItIsFreedInTime) {
  Block* const crosses = build(4);
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  EXPECT_EQ(held(), 10 * kChunk);
  EXPECT_EQ(slab.lent_chunks(), 6u);
  expect_late_when_freed(crosses, 4 * kChunk);
}

TEST_F(CrossingTest, GetsMemoryOfItsOwnWhereThereIsNoSlotInTime) {
  Block* const crosses = build(6);
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  EXPECT_EQ(held(), 12 * kChunk);
  EXPECT_EQ(slab.lent_chunks(), 4u);
  expect_late_when_freed(crosses, 6 * kChunk);
  while (trim(8)) {
  }
  EXPECT_EQ(held(), 10 * kChunk);
}

TEST_F(CrossingTest, IsLentAllTheSameWhereThereIsNoMemory) {
  fake.capacity = 10 * kChunk;
  Block* const crosses = build(6);
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  EXPECT_EQ(slab.lent_chunks(), 6u);
  Block all;
  EXPECT_EQ(take(all, 0, 10 * kChunk), nullptr);
  free(crosses);
  EXPECT_NE(take(all, 0, 10 * kChunk), nullptr);
}

TEST_F(CrossingTest, IsAsItWasWhereTheDriverRefusesToMap) {
  for (int left = 0;; ++left) {
    SCOPED_TRACE(left);
    Block* const crosses = build(5);
    fake.maps_left = left;
    const CUresult result = slab.go_live(&times);
    fake.maps_left = -1;
    check();
    if (result == CUDA_SUCCESS) break;
    EXPECT_EQ(slab.live_bytes(), 0u);
    EXPECT_EQ(slab.lent_chunks(), 0u);
    free(crosses);
    while (trim(100)) {
    }
    EXPECT_EQ(held(), 0u) << "nothing is lost";
  }
}

// What the slab was not built ahead from: a block that was made behind the search.
TEST_F(CrossingTest, LendsChunksThatWereNotMappedAheadRatherThanMakingOthers) {
  Block* const crosses = build(4);
  forget_what_is_mapped();
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  EXPECT_EQ(held(), 10 * kChunk);
  EXPECT_EQ(slab.lent_chunks(), 6u);
  expect_late_when_freed(crosses, 4 * kChunk);
}

TEST_F(CrossingTest, DoesNotLendWhatThePlanDoesNotKnow) {
  build(4);
  forget_what_is_mapped();
  times.freed.clear();
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  EXPECT_EQ(held(), 16 * kChunk);
  EXPECT_EQ(slab.lent_chunks(), 0u);
  check();
}

// A plan was left, and what its slab had given up, but for what a block of it lies in, when the next one came.
struct LeftTest : SlabTest {
  void leave(std::uint64_t chunks_before) {
    go_live(chunks_before * kChunk);
    ASSERT_NE(take(stays_, kChunk, 2 * kChunk), nullptr);
    give_up_idle();
    ASSERT_EQ(slab.gone_chunks(), chunks_before - 1);
    ASSERT_EQ(held(), kChunk);
  }
  CUresult go_live_with(std::uint64_t wanted, std::uint64_t crosses) {
    EXPECT_TRUE(slab.want(wanted * kChunk, [](std::uint64_t) { return false; }));
    slab.build(~std::size_t{0});
    times.first_use.assign(wanted, 9);
    times.freed[crosses] = 5;
    return slab.go_live(&times);
  }
  // All but the second chunk.
  bool can_take(std::uint64_t wanted) {
    Block first, rest;
    Span* const one = take(first, 0, kChunk);
    Span* const other = take(rest, 2 * kChunk, wanted * kChunk);
    if (one != nullptr) slab.window().map.give_back(one, Release{});
    if (other != nullptr) slab.window().map.give_back(other, Release{});
    return one != nullptr && other != nullptr;
  }
  SwitchTimes times;
  Block stays_;  // in the slab
};

TEST_F(LeftTest, WhatIsGoneIsThereWhenTheNextPlanGoesLive) {
  leave(8);
  Block* const crosses = make(4 * kChunk);
  free(make(2 * kChunk));
  ASSERT_EQ(go_live_with(10, crosses->number), CUDA_SUCCESS);
  EXPECT_EQ(slab.gone_chunks(), 0u);
  EXPECT_EQ(slab.lent_chunks(), 4u) << "rather than made beside those of a block that will be freed";
  EXPECT_EQ(held(), 10 * kChunk);
  EXPECT_FALSE(can_take(10)) << "the block is there";
  check();
  free(crosses);
  EXPECT_TRUE(can_take(10));
  EXPECT_TRUE(slab.window().map.consistent());
}

TEST_F(LeftTest, WhoTakesWhatWasGoneWaitsForTheLastUseOfItsChunk) {
  leave(8);
  Block* const crosses = make(6 * kChunk);
  const std::uint64_t number = crosses->number;
  fake.busy = true;
  free(crosses);
  ASSERT_EQ(go_live_with(8, number), CUDA_SUCCESS);
  EXPECT_EQ(slab.gone_chunks(), 0u);
  Block all;
  ASSERT_NE(take(all, 2 * kChunk, 8 * kChunk), nullptr);
  EXPECT_FALSE(all.former.empty());
  fake.busy = false;
}

TEST_F(LeftTest, TheEndThatIsGoneIsNotMadeAnewForASmallerPlan) {
  leave(8);
  Block* const crosses = make(kChunk);
  ASSERT_EQ(go_live_with(4, crosses->number), CUDA_SUCCESS);
  EXPECT_EQ(slab.live_bytes(), 4 * kChunk);
  EXPECT_EQ(slab.gone_chunks(), 0u);
  EXPECT_EQ(held(), 4 * kChunk);
  free(crosses);
  EXPECT_TRUE(can_take(4));
}

TEST_F(LeftTest, WhatCantBeHadStaysGone) {
  leave(8);
  Block* const crosses = make(2 * kChunk);
  fake.capacity = 6 * kChunk;
  ASSERT_EQ(go_live_with(8, crosses->number), CUDA_SUCCESS);
  EXPECT_EQ(slab.gone_chunks(), 2u);
  EXPECT_FALSE(can_take(8));
  free(crosses);
  fake.capacity = 100 * kChunk;
  EXPECT_TRUE(slab.refill(~std::size_t{0}));
  EXPECT_TRUE(can_take(8));
  EXPECT_EQ(held(), 8 * kChunk);
}

TEST_F(LeftTest, IsAsItWasWhereTheDriverRefusesToMap) {
  leave(8);
  for (int left = 0;; ++left) {
    SCOPED_TRACE(left);
    Block* const crosses = make(4 * kChunk);
    fake.maps_left = left;
    const CUresult result = go_live_with(10, crosses->number);
    fake.maps_left = -1;
    check();
    if (result == CUDA_SUCCESS) {
      EXPECT_GT(left, 0);
      free(crosses);
      break;
    }
    EXPECT_EQ(slab.live_bytes(), 8 * kChunk);
    EXPECT_EQ(slab.gone_chunks(), 7u);
    EXPECT_EQ(slab.lent_chunks(), 0u);
    EXPECT_FALSE(can_take(8)) << "there is nothing";
    free(crosses);
    while (trim(100)) {
    }
    EXPECT_EQ(held(), kChunk) << "nothing is lost";
  }
  EXPECT_TRUE(can_take(10));
}

}  // namespace
}  // namespace memopt::agent
