// Windows onto a slab's chunks, over a driver that knows what is mapped where.
#include "agent/memory/own_windows.h"

#include <gtest/gtest.h>

#include <vector>

#include "agent/memory/slab.h"
#include "tests/agent/fake_memory.h"

namespace memopt::agent {
namespace {

struct OwnWindowsTest : testing::Test, Memory {
  OwnWindowsTest() : slab(driver, streams, chunks, bootstrap), host(driver), windows(slab.own_windows()) {
    host.start(kChunk, 0, nullptr);
  }
  ~OwnWindowsTest() override {
    slab.release();
    host.release();
  }

  void go_live(std::uint64_t bytes) {
    ASSERT_TRUE(slab.want(bytes, [](std::uint64_t) { return false; }));
    slab.build(~std::size_t{0});
    ASSERT_EQ(slab.go_live(nullptr), CUDA_SUCCESS);
  }
  // What is mapped at a chunk of the window, and at one of the slab.
  CUmemGenericAllocationHandle at(const Window& window, std::size_t chunk) const {
    const auto found = fake.mapped.find(window.base + chunk * kChunk);
    return found != fake.mapped.end() ? found->second : 0;
  }
  bool tidy_up(std::vector<Chunk*>* freed) {
    const bool more = windows.tidy_up(streams, host, freed);
    ArenaLock lock;
    if (streams.wants_events()) streams.record_wanted(lock);
    return more;
  }
  OwnWindow* mapped(std::uint64_t place, std::uint64_t bytes) {
    OwnWindow* const window = windows.open(place, bytes);
    EXPECT_NE(window, nullptr);
    EXPECT_FALSE(windows.is_mapped(*window));
    EXPECT_EQ(windows.map(*window), CUDA_SUCCESS);
    EXPECT_TRUE(windows.is_mapped(*window));
    return window;
  }

  Slab slab;
  HostStore host;
  OwnWindows& windows;
};

TEST_F(OwnWindowsTest, AreOtherAddressesOfTheSlabsChunks) {
  go_live(6 * kChunk);
  OwnWindow* const one = mapped(kChunk, 2 * kChunk + 512);
  OwnWindow* const other = mapped(2 * kChunk, kChunk);
  ASSERT_EQ(one->chunks.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(at(*one, i), at(slab.window(), 1 + i));
  EXPECT_EQ(at(*other, 0), at(slab.window(), 2)) << "two windows may lie over the same bytes";
  EXPECT_EQ(at(*one, 3), 0u) << "an unmapped chunk follows";
  EXPECT_EQ(chunks.window_at(one->base + 3 * kChunk), one) << "a pointer to the end of a block leads to its window";
  EXPECT_EQ(held(), 6 * kChunk);
}

TEST_F(OwnWindowsTest, NeedASlabThatReachesSoFar) {
  go_live(2 * kChunk);
  OwnWindow* const window = windows.open(kChunk, 2 * kChunk);
  ASSERT_NE(window, nullptr);
  EXPECT_EQ(windows.map(*window), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(windows.is_mapped(*window));
  go_live(3 * kChunk);
  EXPECT_EQ(windows.map(*window), CUDA_SUCCESS);
}

TEST_F(OwnWindowsTest, ARefusedMappingLeavesNone) {
  go_live(3 * kChunk);
  OwnWindow* const window = windows.open(0, 3 * kChunk);
  fake.maps_left = 1;
  EXPECT_NE(windows.map(*window), CUDA_SUCCESS);
  fake.maps_left = -1;
  EXPECT_FALSE(windows.is_mapped(*window));
  EXPECT_EQ(windows.map(*window), CUDA_SUCCESS);
}

TEST_F(OwnWindowsTest, AChunkThatTheSlabGivesUpIsMappedInNone) {
  go_live(6 * kChunk);
  OwnWindow* const high = mapped(3 * kChunk, 2 * kChunk);
  OwnWindow* const low = mapped(0, kChunk);
  go_live(4 * kChunk);
  EXPECT_FALSE(slab.shorten(100));
  EXPECT_EQ(held(), 4 * kChunk);
  EXPECT_FALSE(windows.is_mapped(*high));
  EXPECT_EQ(at(*high, 1), 0u) << "what was given up would be held by it";
  EXPECT_TRUE(windows.is_mapped(*low));
  Release awaited;
  slab.give_up_idle(&awaited);
  EXPECT_EQ(held(), 0u);
  EXPECT_FALSE(windows.is_mapped(*low));
}

TEST_F(OwnWindowsTest, AnotherPlanTakesThoseForTheSamePlace) {
  go_live(4 * kChunk);
  OwnWindow* const window = mapped(kChunk, kChunk);
  EXPECT_NE(windows.open(kChunk, kChunk), window) << "it is wanted already";
  windows.begin_plan();
  EXPECT_NE(windows.open(2 * kChunk, kChunk), window);
  EXPECT_EQ(windows.open(kChunk, kChunk), window);
  EXPECT_TRUE(windows.is_mapped(*window)) << "no call of the driver is needed";
}

TEST_F(OwnWindowsTest, WhatNoPlanWantsIsClosedOnceItIsFreeAndOver) {
  go_live(4 * kChunk);
  {
    ArenaLock lock;
    ASSERT_TRUE(host.grow(lock, 2));
  }
  const std::size_t pieces = host.free_pieces();
  OwnWindow* const window = mapped(0, 2 * kChunk);
  ASSERT_TRUE(windows.take_pieces(*window, host));
  EXPECT_EQ(host.free_pieces(), pieces - 2);
  Block block;
  window->block = &block;
  windows.begin_plan();
  std::vector<Chunk*> freed;
  EXPECT_TRUE(tidy_up(&freed)) << "a block lies in it";
  window->block = nullptr;
  fake.busy = true;
  window->last_uses.add(streams.begin({}));
  queued();
  EXPECT_TRUE(tidy_up(&freed)) << "it is in use";
  EXPECT_EQ(windows.size(), 1u);
  fake.busy = false;
  EXPECT_FALSE(tidy_up(&freed));
  EXPECT_EQ(windows.size(), 0u);
  EXPECT_TRUE(freed.empty());
  EXPECT_EQ(host.free_pieces(), pieces);
  EXPECT_EQ(held(), 4 * kChunk) << "the chunks are the slab's";
}

TEST_F(OwnWindowsTest, ChunksBesideTheSlabComeBackWhenTheBlockIsGone) {
  go_live(4 * kChunk);
  OwnWindow* const window = mapped(0, 2 * kChunk);
  std::vector<Chunk*> taken;
  ASSERT_EQ(bootstrap.take_chunks(2, false, &taken), CUDA_SUCCESS);
  EXPECT_EQ(windows.map_beside(*window, taken), CUDA_SUCCESS);
  EXPECT_FALSE(windows.is_mapped(*window)) << "not onto the slab";
  EXPECT_NE(at(*window, 0), at(slab.window(), 0));
  Block block;
  window->block = &block;
  std::vector<Chunk*> freed;
  EXPECT_TRUE(tidy_up(&freed));
  window->block = nullptr;
  EXPECT_FALSE(tidy_up(&freed));
  EXPECT_EQ(freed, taken);
  EXPECT_EQ(windows.size(), 1u) << "the plan wants it still";
  EXPECT_EQ(windows.map(*window), CUDA_SUCCESS);
  for (Chunk* const chunk : freed) bootstrap.keep(chunk);
}

TEST_F(OwnWindowsTest, PiecesAreTakenAllOrNone) {
  go_live(4 * kChunk);
  OwnWindow* const window = mapped(0, 3 * kChunk);
  EXPECT_FALSE(windows.take_pieces(*window, host));
  EXPECT_TRUE(window->pieces.empty());
  {
    ArenaLock lock;
    ASSERT_TRUE(host.grow(lock, 3));
  }
  EXPECT_TRUE(windows.take_pieces(*window, host));
  const std::size_t free = host.free_pieces();
  EXPECT_TRUE(windows.take_pieces(*window, host)) << "it has them";
  EXPECT_EQ(host.free_pieces(), free);
}

// What lies side by side is copied at once.
TEST_F(OwnWindowsTest, PiecesThatLieSideBySideAreTakenInPlaceOfOthersOnceAPlan) {
  go_live(6 * kChunk);
  OwnWindow* const window = mapped(0, 3 * kChunk);
  const auto grow = [&](std::size_t pieces) {
    ArenaLock lock;
    ASSERT_TRUE(host.grow(lock, pieces));
  };
  const auto adjoin = [&] {
    for (std::size_t i = 1; i < window->pieces.size(); ++i) {
      if (window->pieces[i]->bytes != window->pieces[i - 1]->bytes + kChunk) return false;
    }
    return true;
  };
  // Every second one is in use.
  grow(6);
  std::vector<HostPiece*> others;
  for (int i = 0; i < 3; ++i) {
    HostPiece* const free = host.take();
    others.push_back(host.take());
    host.give_back(free, Release{});
  }
  ASSERT_TRUE(windows.take_pieces(*window, host));
  EXPECT_FALSE(adjoin());
  const std::vector<HostPiece*> torn = window->pieces;
  for (HostPiece* const other : others) host.give_back(other, Release{});
  grow(6);
  ASSERT_TRUE(windows.take_pieces(*window, host));
  EXPECT_EQ(window->pieces, torn) << "it is not looked for all the time";
  windows.begin_plan();
  const std::size_t free = host.free_pieces();
  Release read;
  read.add(StreamUse{kInSlot, 7});
  for (HostPiece* const piece : window->pieces) piece->former = read;
  ASSERT_TRUE(windows.take_pieces(*window, host));
  EXPECT_TRUE(adjoin());
  EXPECT_EQ(host.free_pieces(), free);
  EXPECT_EQ(torn[0]->former.count, 1u) << "a copy may still read them";
}

}  // namespace
}  // namespace memopt::agent
