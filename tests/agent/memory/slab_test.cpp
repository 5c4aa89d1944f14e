// The physical space of plans that follow each other, over a driver that knows what is mapped where.
#include "agent/memory/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

#include "tests/agent/memory/slab_fixture.h"

namespace memopt::agent {
namespace {

TEST_F(SlabTest, ASmallerPlanGivesChunksBackOnceTheyAreFreeAndTheirWorkIsOver) {
  go_live(10 * kChunk);
  EXPECT_EQ(held(), 10 * kChunk);
  Block block;
  Span* const span = take(block, 6 * kChunk, 7 * kChunk);
  ASSERT_NE(span, nullptr);
  go_live(4 * kChunk - 512);
  EXPECT_EQ(slab.live_bytes(), 10 * kChunk) << "nothing is taken from those who are there";
  EXPECT_TRUE(slab.shorten(1));
  EXPECT_EQ(held(), 9 * kChunk) << "so many at a time as is asked";
  EXPECT_TRUE(slab.shorten(100));
  EXPECT_EQ(held(), 7 * kChunk);
  fake.busy = true;
  slab.window().map.give_back(span, used());
  EXPECT_TRUE(slab.shorten(100));
  ASSERT_TRUE(streams.wants_events()) << "or there would never be an answer";
  {
    ArenaLock lock;
    streams.record_wanted(lock);
  }
  EXPECT_TRUE(slab.shorten(100));
  EXPECT_EQ(held(), 7 * kChunk) << "the device may still write there";
  fake.busy = false;
  EXPECT_FALSE(slab.shorten(100));
  EXPECT_EQ(held(), 4 * kChunk);
  EXPECT_EQ(fake.mapped.size(), 4u);
  EXPECT_EQ(slab.live_bytes(), 4 * kChunk);
  EXPECT_EQ(take(block, 4 * kChunk, 5 * kChunk), nullptr);
}

TEST_F(SlabTest, GrowsAgainAfterwards) {
  go_live(10 * kChunk);
  go_live(2 * kChunk);
  EXPECT_FALSE(slab.shorten(100));
  go_live(5 * kChunk);
  EXPECT_EQ(held(), 5 * kChunk);
  Block block;
  EXPECT_NE(take(block, 0, 5 * kChunk), nullptr);
  slab.release();
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
}

// What small blocks of the iteration before were in is free at its end, and would be held beside the slab.
TEST_F(SlabTest, WindowsInWhichNoBlockLiesServeItRatherThanNewChunks) {
  std::vector<Block*> small;
  for (int i = 0; i < 5; ++i) small.push_back(make(kChunk - 1024));
  ASSERT_EQ(held(), 5 * kChunk);
  for (std::size_t i = 0; i < 4; ++i) free(small[i]);
  EXPECT_FALSE(bootstrap.free_empty_window()) << "whether work is over is not known yet";
  {
    ArenaLock lock;
    streams.record_wanted(lock);
  }
  go_live(3 * kChunk);
  EXPECT_EQ(held(), 5 * kChunk);
  check();
  go_live(6 * kChunk);
  EXPECT_EQ(held(), 7 * kChunk) << "one was still free, and two are new";
}

TEST_F(SlabTest, WindowsOnWhichWorkGoesOnAreNotWaitedFor) {
  Block* const small = make(kChunk - 1024);
  fake.busy = true;
  free(small);
  go_live(kChunk);
  EXPECT_EQ(held(), 2 * kChunk);
  EXPECT_EQ(fake.host_waits, 0);
  fake.busy = false;
}

// Of three blocks side by side in two chunks the one in the middle goes at the end of each iteration, and the others
// stay.
TEST_F(SlabTest, WhatBlocksThatStayLeaveOfTheirChunksIsThePlans) {
  constexpr std::uint64_t kPart = kChunk * 5 / 4;
  Block* const first = make(kPart - 512);
  Block* const second = make(kPart - 512);
  Block* const third = make(kPart - 512);
  const std::uint64_t base = first->base;
  ASSERT_EQ(third->base, base + 2 * kPart);
  EXPECT_EQ(held(), 4 * kChunk);
  const auto stays = [&](std::uint64_t block) { return block == first->number || block == third->number; };
  const std::vector<shm::PlannedChunk> kept = {
      {base + kChunk, 0}, {base + 3 * kChunk, kChunk}, {base + 100 * kChunk, 3 * kChunk}};
  EXPECT_TRUE(slab.would_keep(base + kChunk, kept));
  EXPECT_FALSE(slab.would_keep(base, kept));
  ASSERT_TRUE(slab.want(5 * kChunk, stays, kept));
  SwitchTimes times;
  times.freed[second->number] = 7;
  slab.build(~std::size_t{0});
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  EXPECT_EQ(held(), 7 * kChunk) << "two of the slab's chunks are those of the blocks";
  EXPECT_TRUE(slab.keeps_only(kept));
  EXPECT_FALSE(slab.keeps_only({}));
  Block block;
  const std::uint64_t end_of_first = kPart - kChunk;
  const std::uint64_t end_of_third = 3 * kPart - 512 - 3 * kChunk;  // without a byte for a pointer to it
  EXPECT_EQ(take(block, 0, end_of_first), nullptr) << "a block that stays";
  EXPECT_EQ(take(block, end_of_first, kChunk), nullptr) << "one that will go";
  EXPECT_EQ(take(block, kChunk, kChunk + end_of_third), nullptr);
  EXPECT_NE(take(block, kChunk + end_of_third, 4 * kChunk), nullptr) << "what is free, and the chunk behind it";
  fake.busy = true;
  free(second);
  Block other;
  ASSERT_NE(take(other, end_of_first, kChunk), nullptr);
  EXPECT_FALSE(other.former.empty()) << "who takes the bytes waits for who used them";
  fake.busy = false;
  // Nothing else is served from there.
  for (int i = 0; i < 8; ++i) make(kPart);
  for (int i = 0; i < 8; ++i) make(kChunk / 4);
  check();
  for (const auto& [number, live] : blocks) {
    for (const std::size_t slot : {std::size_t{0}, std::size_t{1}}) {
      if (stays(number)) continue;
      const std::uint64_t chunk = slot == 0 ? base + kChunk : base + 3 * kChunk;
      EXPECT_TRUE(live->base >= chunk + kChunk || live->base + live->bytes <= chunk) << number;
    }
  }
}

// A block that will go, nobody knows when, would be in the way of a place for ever.
TEST_F(SlabTest, AChunkInWhichSomethingElseLiesIsNotKept) {
  Block* const first = make(kChunk * 5 / 4 - 512);
  make(kChunk * 5 / 4 - 512);
  const auto stays = [&](std::uint64_t block) { return block == first->number; };
  const std::vector<shm::PlannedChunk> kept = {{first->base + kChunk, 0}};
  ASSERT_TRUE(slab.want(2 * kChunk, stays, kept));
  slab.build(~std::size_t{0});
  const SwitchTimes times;
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  Block block;
  EXPECT_NE(take(block, 0, 2 * kChunk), nullptr) << "its bytes are left free for nothing, and nothing worse";
}

// A few bytes of a block that goes at 7 would keep a place of many chunks from all that is to lie there before.
TEST_F(SlabTest, AChunkIsNotKeptWhereALargePlaceWouldWaitForIt) {
  Block* const first = make(kChunk * 5 / 4 - 512);
  Block* const second = make(512);
  ASSERT_LT(second->base, first->base + 2 * kChunk);
  const auto stays = [&](std::uint64_t block) { return block == first->number; };
  const std::vector<shm::PlannedChunk> kept = {{first->base + kChunk, 0}};
  const std::uint64_t begin = second->base - first->base - kChunk;
  SwitchTimes times;
  times.freed[second->number] = 7;
  std::uint64_t live = 0;
  const auto go_live = [&](LargePlace place) {
    times.large = {place};
    live += kChunk;
    const std::vector<shm::PlannedChunk> here = {{first->base + kChunk, live - kChunk}};
    EXPECT_TRUE(slab.want(live, stays, here));
    slab.build(~std::size_t{0});
    EXPECT_EQ(slab.go_live(&times), CUDA_SUCCESS);
    return slab.keeps_only({}) ? 0 : 1;
  };
  EXPECT_EQ(go_live({begin, 4 * kChunk, 7}), 0);
  EXPECT_EQ(go_live({kChunk + begin + 511, 5 * kChunk, 0}), 0) << "one byte is enough";
  EXPECT_EQ(go_live({2 * kChunk + begin, 5 * kChunk, 8}), 1) << "by then it is gone";
  check();
}

// Small blocks share a window.
TEST_F(SlabTest, SmallBlocksThatStayLeaveTheRestOfTheirWindow) {
  Block* const small = make(kChunk / 4);
  const std::uint64_t base = small->base;
  const auto stays = [&](std::uint64_t block) { return block == small->number; };
  const std::vector<shm::PlannedChunk> kept = {{base, 0}};
  ASSERT_TRUE(slab.want(2 * kChunk, stays, kept));
  slab.build(~std::size_t{0});
  const SwitchTimes times;
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  EXPECT_EQ(held(), 2 * kChunk);
  Block block;
  EXPECT_EQ(take(block, 0, kChunk / 4), nullptr);
  Span* const rest = take(block, kChunk / 4, 2 * kChunk);
  ASSERT_NE(rest, nullptr) << "also where a pointer to its end would be found by its own address";
  EXPECT_NE(make(kChunk / 4)->base / kChunk, base / kChunk);
  slab.window().map.give_back(rest, used());
  free(small);
  Block whole;
  Span* const all = take(whole, 0, 2 * kChunk);
  ASSERT_NE(all, nullptr) << "what the last of them leaves, too";
  slab.window().map.give_back(all, used());
  ASSERT_TRUE(slab.want(
      kChunk / 2, [](std::uint64_t) { return false; }, kept));
  Release awaited;
  slab.give_up_idle(&awaited);
  {
    ArenaLock lock;
    streams.record_wanted(lock);
  }
  give_up_idle();
  EXPECT_EQ(slab.gone_chunks(), 2u);
  for (int i = 0; i < 4; ++i) trim(8);
  EXPECT_EQ(held(), kChunk) << "of the block that was served elsewhere";
}

// As at a limit that the plan is too large for: what blocks that stay have is theirs alone again, and the rest of it
// serves others where they are.
TEST_F(SlabTest, ASlabThatGoesLeavesTheChunksOfBlocksThatStay) {
  Block* const large = make(kChunk * 5 / 4 - 512);
  Block* const small = make(kChunk / 4);
  const auto stays = [&](std::uint64_t block) { return block == large->number || block == small->number; };
  const std::uint64_t base = large->base;
  const bool shares = small->base / kChunk == base / kChunk + 1;  // or in a window of its own
  std::vector<shm::PlannedChunk> kept = {{base + kChunk, 0}};
  if (!shares) kept.push_back({small->base / kChunk * kChunk, kChunk});
  ASSERT_TRUE(slab.want(3 * kChunk, stays, kept));
  slab.build(~std::size_t{0});
  const SwitchTimes times;
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  Block block;
  Span* const span = take(block, kChunk - 512, kChunk);
  ASSERT_NE(span, nullptr);
  Release awaited;
  EXPECT_FALSE(slab.dissolve(&awaited)) << "a block of the plan lies in one of them";
  slab.window().map.give_back(span, used());
  fake.busy = true;
  EXPECT_FALSE(slab.dissolve(&awaited)) << "it may be used by the plan's address still";
  EXPECT_FALSE(awaited.empty());
  fake.busy = false;
  {
    ArenaLock lock;
    streams.record_wanted(lock);
  }
  EXPECT_TRUE(slab.dissolve(&awaited));
  EXPECT_TRUE(slab.keeps_only({}));
  EXPECT_EQ(slab.live_bytes(), 0u);
  EXPECT_EQ(held(), (shares ? 2 : 3) * kChunk);
  const std::uint64_t before = held();
  Block* const next = make(kChunk / 4);
  EXPECT_EQ(held(), before) << "what the slab had of the chunks is free";
  for (Block* const each : {large, small, next}) free(each);
  for (int i = 0; i < 4; ++i) trim(8);
  EXPECT_EQ(held(), 0u);
  // It can go live anew.
  go_live(2 * kChunk);
  EXPECT_NE(take(block, 0, 2 * kChunk), nullptr);
}

// A chunk that an earlier plan keeps may be in the way of the next one.
TEST_F(SlabTest, OneOfItsKeptChunksIsGivenUpAndItsBytesMadeAnew) {
  constexpr std::uint64_t kPart = kChunk * 5 / 4;
  Block* const first = make(kPart - 512);
  Block* const second = make(kPart - 512);
  const std::uint64_t base = first->base;
  ASSERT_EQ(second->base, base + kPart);
  const auto stays = [](std::uint64_t) { return true; };
  const std::vector<shm::PlannedChunk> kept = {{base + kChunk, 0}, {base + 2 * kChunk, kChunk}};
  ASSERT_TRUE(slab.want(4 * kChunk, stays, kept));
  slab.build(~std::size_t{0});
  const SwitchTimes times;
  ASSERT_EQ(slab.go_live(&times), CUDA_SUCCESS);
  const std::uint64_t before = held();
  const std::uint64_t end_of_second = 2 * kPart - 512 - 2 * kChunk;
  const std::span<const shm::PlannedChunk> only_first(kept.data(), 1);
  const std::vector<shm::PlannedChunk> moved = {{base + kChunk, 2 * kChunk}};
  EXPECT_TRUE(slab.keeps_elsewhere(moved));
  EXPECT_FALSE(slab.keeps_elsewhere(kept));
  EXPECT_FALSE(slab.would_keep(base + 2 * kChunk, only_first)) << "by a plan that does not name it";
  Block block;
  Span* const in_both = take(block, kChunk + end_of_second, 3 * kChunk);
  ASSERT_NE(in_both, nullptr);
  Release awaited;
  slab.give_up_kept(only_first, &awaited);
  EXPECT_FALSE(slab.keeps_only(only_first)) << "a block of the plan lies in it";
  EXPECT_TRUE(awaited.empty());
  slab.window().map.give_back(in_both, used());
  fake.busy = true;
  slab.give_up_kept(only_first, &awaited);
  EXPECT_FALSE(slab.keeps_only(only_first)) << "it may be used by the plan's address still";
  EXPECT_FALSE(awaited.empty());
  fake.busy = false;
  {
    ArenaLock lock;
    streams.record_wanted(lock);
  }
  slab.give_up_kept(only_first, &awaited);
  EXPECT_TRUE(slab.keeps_only(only_first));
  EXPECT_FALSE(slab.keeps_only({})) << "the other one stays";
  EXPECT_EQ(slab.gone_chunks(), 1u);
  EXPECT_EQ(take(block, kChunk, 2 * kChunk), nullptr);
  EXPECT_EQ(held(), before);
  EXPECT_TRUE(slab.refill(8));
  EXPECT_EQ(held(), before + kChunk);
  EXPECT_NE(take(block, kChunk, 4 * kChunk), nullptr) << "all of it";
  Block* const next = make(kChunk / 4);
  EXPECT_EQ(held(), before + kChunk) << "what the slab had of the chunk is free where its block is";
  EXPECT_EQ(next->base / kChunk, base / kChunk + 2);
  check();
}

TEST_F(SlabTest, WhatALargerPlanIsBeingBuiltFromIsNotGivenBack) {
  go_live(4 * kChunk);
  Block* const large = make(6 * kChunk - 512);
  ASSERT_NE(large, nullptr);
  free(large);
  ASSERT_TRUE(slab.want(8 * kChunk, [](std::uint64_t) { return false; }));
  slab.build(2);
  EXPECT_FALSE(slab.shorten(100));
  EXPECT_EQ(slab.live_bytes(), 4 * kChunk);
}

// Blocks are made and freed while it is built, and between plans; chunks are made only where no free one is left.
TEST(Slab, IsMadeOfAllThatIsFree) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    Memory memory;
    Slab slab(memory.driver, memory.streams, memory.chunks, memory.bootstrap);
    memory.free(memory.make(kChunk));  // the row is closed
    while (memory.trim(1)) {
    }
    const auto some_steps = [&] {
      for (int step = 0; step < 6; ++step) {
        if (!memory.blocks.empty() && random() % 2 == 0) {
          auto at = memory.blocks.begin();
          std::advance(at, static_cast<std::ptrdiff_t>(random() % memory.blocks.size()));
          memory.free(at->second.get());
        } else {
          ASSERT_NE(memory.make((1 + random() % 4) * kChunk), nullptr);
        }
      }
      ASSERT_NO_FATAL_FAILURE(memory.check());
    };
    std::uint64_t live = 0;
    for (int plan = 0; plan < 3; ++plan) {
      some_steps();
      // Wanted, given up for less or more, and wanted again.
      for (int change = 0; change < 3; ++change) {
        const std::uint64_t stays = memory.numbers - memory.numbers / 4;
        ASSERT_TRUE(slab.want((4 + random() % 40) * kChunk, [stays](std::uint64_t block) { return block < stays; }));
        for (int i = 0; i < 4; ++i) {
          slab.build(random() % 8);
          some_steps();
        }
      }
      const std::uint64_t wanted = std::max(live, (live / kChunk + random() % 30) * kChunk);
      ASSERT_TRUE(slab.want(wanted, [](std::uint64_t) { return false; }));
      slab.build(random() % 16);
      some_steps();
      const std::uint64_t held = memory.held();
      const std::uint64_t free = memory.bootstrap.cached_bytes();
      SwitchTimes times;
      times.first_use.resize(wanted / kChunk);
      for (std::uint64_t& use : times.first_use) use = random() % 30;
      for (const auto& [number, block] : memory.blocks) times.freed[number] = random() % 20;
      const bool timed = round % 2 != 0;
      ASSERT_EQ(slab.go_live(timed ? &times : nullptr), CUDA_SUCCESS);
      ASSERT_EQ(slab.live_bytes(), wanted);
      // Chunks are lent rather than made.
      if (!timed) {
        ASSERT_LE(memory.held(), held + wanted - live - std::min(wanted - live, free)) << "round " << round;
      }
      for (const Chunk* const chunk : slab.window().chunks) {
        if (chunk == nullptr || !chunk->lent || !timed || live != 0) continue;
        ASSERT_LT(memory.bootstrap.freed_at(*chunk, times), times.first_use_of(std::size_t(chunk->slab_slot)));
      }
      ASSERT_NO_FATAL_FAILURE(memory.check());
      live = wanted;
    }
    while (!memory.blocks.empty()) memory.free(memory.blocks.begin()->second.get());
    while (memory.trim(8)) {
    }
    ASSERT_EQ(memory.held(), live);
    slab.release();
    memory.bootstrap.release_all();
    ASSERT_EQ(memory.held(), 0u);
  }
}

// Blocks of before the switch lie in them till then, and would need as many beside them else.
TEST_F(SlabTest, WhatASlabIsBeingBuiltFromServesBlocksAsLongAsItIsNotLive) {
  free(make(6 * kChunk));
  ASSERT_TRUE(slab.want(4 * kChunk, [](std::uint64_t) { return false; }));
  ASSERT_TRUE(slab.build(~std::size_t{0}));
  while (trim(8)) {
    if (held() == 4 * kChunk) break;
  }
  EXPECT_EQ(held(), 4 * kChunk) << "the others go back";
  EXPECT_EQ(fake.mapped.size(), 8u) << "each is where it was, and in the slab";
  const std::uint64_t made = fake.made;
  Block* const block = make(4 * kChunk);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(fake.made, made);
  EXPECT_EQ(fake.mapped.size(), 8u);
  check();
  free(block);
  ASSERT_EQ(slab.go_live(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(held(), 4 * kChunk);
  Block all;
  EXPECT_NE(take(all, 0, 4 * kChunk), nullptr);
  check();
}

TEST_F(SlabTest, BlocksThatStayAfterAllKeepTheirChunks) {
  Block* const crosses = make(6 * kChunk);
  free(make(4 * kChunk));
  go_live(10 * kChunk);
  slab.give_up_lent();
  EXPECT_EQ(slab.lent_chunks(), 0u);
  EXPECT_EQ(slab.gone_chunks(), 6u);
  EXPECT_TRUE(slab.refill(100));
  EXPECT_EQ(held(), 16 * kChunk);
  Block all;
  EXPECT_NE(take(all, 0, 10 * kChunk), nullptr);
  check();
  free(crosses);
  while (trim(8)) {
  }
  EXPECT_EQ(held(), 10 * kChunk);
}

TEST_F(SlabTest, IdleChunksGoBackWhereMemoryIsShortAndComeAgain) {
  go_live(8 * kChunk);
  Block block;
  Span* const span = take(block, kChunk / 2, kChunk + kChunk / 2);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(slab.idle_bytes(), 6 * kChunk);
  give_up_idle();
  EXPECT_EQ(held(), 2 * kChunk) << "those of the block, which lies across two";
  EXPECT_EQ(slab.gone_chunks(), 6u);
  EXPECT_EQ(slab.idle_bytes(), 0u);
  EXPECT_EQ(slab.live_bytes(), 8 * kChunk);
  EXPECT_FALSE(slab.shorten(100));
  Block other;
  EXPECT_EQ(take(other, 4 * kChunk, 5 * kChunk), nullptr) << "bytes without a chunk can't be taken";
  EXPECT_NE(take(other, 0, kChunk / 2), nullptr);
  fake.capacity = 4 * kChunk;
  EXPECT_FALSE(slab.refill(100));
  EXPECT_EQ(slab.gone_chunks(), 4u) << "as far as there is memory";
  EXPECT_EQ(held(), fake.capacity);
  fake.capacity = kDevice;
  EXPECT_FALSE(slab.refill(3));
  EXPECT_TRUE(slab.refill(3));
  EXPECT_EQ(held(), 8 * kChunk);
  EXPECT_EQ(fake.mapped.size(), 8u);
  EXPECT_TRUE(slab.window().map.consistent());
  Block all;
  EXPECT_NE(take(all, 2 * kChunk, 8 * kChunk), nullptr);
}

TEST_F(SlabTest, ChunksOfAPlaceComeBackForIt) {
  go_live(8 * kChunk);
  give_up_idle();
  ASSERT_EQ(slab.gone_chunks(), 8u);
  fake.capacity = 3 * kChunk;
  EXPECT_EQ(slab.gone_chunks_at(kChunk / 2, 2 * kChunk), 3u) << "it lies across three";
  EXPECT_TRUE(slab.refill_at(kChunk / 2, 2 * kChunk));
  EXPECT_EQ(slab.gone_chunks_at(kChunk / 2, 2 * kChunk), 0u);
  EXPECT_EQ(slab.gone_chunks_at(0, 8 * kChunk), 5u) << "and no others";
  Block block;
  Span* const span = take(block, kChunk / 2, kChunk);
  ASSERT_NE(span, nullptr);
  EXPECT_FALSE(slab.refill_at(5 * kChunk, kChunk)) << "there are no more";
  std::vector<Chunk*> freed;
  slab.give_up_unswapped(2, 2 * kChunk, kChunk, &freed);
  EXPECT_EQ(freed.size(), 1u) << "not the block's, nor what it is for";
  bootstrap.keep_given_up(freed);
  EXPECT_TRUE(slab.refill_at(5 * kChunk, kChunk));
  EXPECT_EQ(slab.gone_chunks_at(kChunk, kChunk), 1u);
  EXPECT_EQ(held(), fake.capacity);
  EXPECT_TRUE(slab.window().map.consistent());
  slab.window().map.give_back(span, Release{});
}

TEST_F(SlabTest, ChunksBelowWindowsOfTheirOwnStayForWhatComesBack) {
  go_live(4 * kChunk);
  OwnWindow* const window = slab.own_windows().open(2 * kChunk, 2 * kChunk);
  ASSERT_NE(window, nullptr);
  ASSERT_EQ(slab.own_windows().map(*window), CUDA_SUCCESS);
  std::vector<Chunk*> freed;
  slab.give_up_unswapped(4, 0, kChunk, &freed);
  EXPECT_EQ(freed.size(), 1u);
  EXPECT_EQ(slab.gone_chunks_at(kChunk, kChunk), 1u);
  bootstrap.keep_given_up(freed);
}

TEST_F(SlabTest, ChunksThatWorkIsNotDoneWithStay) {
  go_live(4 * kChunk);
  Block block;
  Span* const span = take(block, 0, 2 * kChunk);
  fake.busy = true;
  slab.window().map.give_back(span, used());
  give_up_idle();
  EXPECT_EQ(held(), 4 * kChunk) << "one run, whose work is not over";
  fake.busy = false;
  give_up_idle();
  EXPECT_EQ(held(), 0u);
  slab.release();
  EXPECT_TRUE(fake.mapped.empty());
}

TEST_F(SlabTest, GoesAwayWithHoles) {
  go_live(6 * kChunk);
  Block block;
  ASSERT_NE(take(block, 3 * kChunk, 4 * kChunk), nullptr);
  give_up_idle();
  fake.capacity = 4 * kChunk;
  go_live(9 * kChunk);
  EXPECT_EQ(held(), 4 * kChunk) << "a larger plan gets what it is larger by; the rest comes when there is memory";
  fake.capacity = 6 * kChunk;
  go_live(9 * kChunk);
  EXPECT_EQ(held(), 6 * kChunk) << "or when the next one goes live";
  EXPECT_EQ(slab.gone_chunks(), 3u);
  slab.release();
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
}

// As where a program is only recorded: its memory is the driver's, and no chunk was ever made.
TEST(Slab, GivesNothingBackWhereNothingWasMade) {
  const Driver driver = functions();
  StreamTable streams(driver);
  ChunkStore never_started(driver);
  Bootstrap bootstrap(never_started, streams);
  Slab slab(driver, streams, never_started, bootstrap);
  slab.release();
  bootstrap.release_all();
  EXPECT_EQ(slab.live_bytes(), 0u);
}

}  // namespace
}  // namespace memopt::agent
