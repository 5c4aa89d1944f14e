// The physical space of plans that follow each other, over a driver that knows what is mapped where.
#include "agent/memory/slab.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/agent/fake_memory.h"

namespace memopt::agent {
namespace {

struct SlabTest : testing::Test, Memory {
  SlabTest() : slab(driver, streams, chunks, bootstrap) {}
  ~SlabTest() override { slab.release(); }

  void go_live(std::uint64_t bytes) {
    ASSERT_TRUE(slab.want(bytes, [](std::uint64_t) { return false; }));
    slab.build(~std::size_t{0});
    ASSERT_EQ(slab.go_live(), CUDA_SUCCESS);
  }
  Span* take(Block& block, std::uint64_t begin, std::uint64_t end) {
    Block* in_the_way = nullptr;
    return slab.window().map.take(begin, end, &block, nullptr, &block.former, &in_the_way);
  }
  Release used() {
    Release uses;
    uses.add(streams.begin({}));
    queued();
    streams.record_events(uses);
    return uses;
  }

  Slab slab;
};

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

TEST_F(SlabTest, WhatALargerPlanIsBeingBuiltFromIsNotGivenBack) {
  go_live(4 * kChunk);
  Block* const large = make(6 * kChunk);
  ASSERT_NE(large, nullptr);
  free(large);
  while (fake.handles.size() > 4 && bootstrap.trim(0)) {
  }
  ASSERT_TRUE(slab.want(8 * kChunk, [](std::uint64_t) { return false; }));
  slab.build(2);
  EXPECT_FALSE(slab.shorten(100));
  EXPECT_EQ(slab.live_bytes(), 4 * kChunk);
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
