// Blocks before there is a plan, over a driver that knows what is mapped where: whatever is served must be mapped, and
// nobody else's.
#include "agent/memory/bootstrap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/agent/fake_memory.h"

namespace memopt::agent {
namespace {

class BootstrapTest : public testing::Test, public Memory {};

TEST_F(BootstrapTest, WhatIsMadeBeforeAnythingIsFreedStandsSideBySide) {
  constexpr std::uint64_t kBytes = kChunk + kChunk / 4;
  for (int i = 0; i < 16; ++i) ASSERT_NE(make(kBytes), nullptr);
  check();
  // A window each would take 32 chunks.
  EXPECT_EQ(held(), 21 * kChunk);
}

TEST_F(BootstrapTest, ChunksOfTheRowThatAreFreeAsAWholeServeOthers) {
  Block* const first = make(kChunk + 512);
  Block* const large = make(6 * kChunk);
  Block* const last = make(kChunk + 512);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(held(), 9 * kChunk);
  free(large);
  // Whether its last use is over is asked at one allocation and answered at the next.
  ASSERT_NE(make(512), nullptr);
  ASSERT_NE(make(5 * kChunk), nullptr);
  check();
  EXPECT_EQ(held(), 10 * kChunk);
  EXPECT_EQ(fake.host_waits, 0);
  EXPECT_NE(first->window, blocks.rbegin()->second->window) << "the row takes nothing once a block was freed";
}

TEST_F(BootstrapTest, ChunksOfTheRowInUseAreWaitedForOnlyWhereThereAreNoOthers) {
  fake.capacity = 8 * kChunk;
  Block* const large = make(6 * kChunk - 512);
  fake.busy = true;
  free(large);
  ASSERT_NE(make(2 * kChunk), nullptr);
  EXPECT_EQ(fake.host_waits, 0);
  ASSERT_NE(make(4 * kChunk), nullptr);
  EXPECT_GT(fake.host_waits, 0);
  check();
  EXPECT_LE(held(), fake.capacity);
}

TEST_F(BootstrapTest, EverythingGoesBack) {
  std::vector<Block*> made;
  for (const std::uint64_t bytes : {3 * kChunk + 5, kChunk, std::uint64_t{100}, 2 * kChunk + 1}) {
    made.push_back(make(bytes));
  }
  for (Block* const block : made) free(block);
  while (bootstrap.trim(1)) {
  }
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
}

TEST_F(BootstrapTest, TheContextGoesWithAllOfIt) {
  for (int i = 0; i < 5; ++i) ASSERT_NE(make(kChunk + 1), nullptr);
  free(blocks.begin()->second.get());
  ASSERT_NE(make(3 * kChunk), nullptr);
  ASSERT_NE(make(512), nullptr);
  bootstrap.release_all();
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
}

TEST(Bootstrap, AnySequenceIsServedApart) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    Memory memory;
    memory.fake.busy = round % 2 == 1;
    memory.fake.capacity = round % 4 == 3 ? 24 * kChunk : kDevice;
    for (int step = 0; step < 60; ++step) {
      // The first blocks are made without a free between them.
      if (step > 8 && !memory.blocks.empty() && random() % 2 == 0) {
        auto at = memory.blocks.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % memory.blocks.size()));
        memory.free(at->second.get());
      } else {
        memory.make(random() % 3 == 0 ? 1 + random() % 100000 : 1 + random() % (3 * kChunk));
      }
      if (random() % 16 == 0) memory.bootstrap.trim(4);
      ASSERT_NO_FATAL_FAILURE(memory.check());
      ASSERT_LE(memory.held(), memory.fake.capacity);
      ASSERT_EQ(memory.held(), memory.chunks.counts().held_bytes);
    }
    while (!memory.blocks.empty()) memory.free(memory.blocks.begin()->second.get());
    memory.fake.busy = false;
    while (memory.bootstrap.trim(8)) {
    }
    ASSERT_EQ(memory.held(), 0u);
  }
}

}  // namespace
}  // namespace memopt::agent
