// What leaves at a limit is copied ahead of that, and is the program's until it has left.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "tests/agent/memory/at_a_limit.h"

namespace memopt::agent {
namespace {

TEST_F(AtALimit, WhatIsToLeaveNextIsCopiedAhead) {
  const std::array blocks = blocks_in_turn();
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_TRUE(is_away(blocks[0]));
  EXPECT_FALSE(is_away(blocks[1]));
  EXPECT_EQ(g_copied.count(blocks[1]), 1u);
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_TRUE(is_away(blocks[1]));
  EXPECT_EQ(g_copied.count(blocks[1]), 1u) << "what it held was on the host already";
  for (const CUdeviceptr block : blocks) free(block);
}

TEST_F(AtALimit, WhatIsUsedOnceItHasBeenCopiedStaysAndIsCopiedAgain) {
  const std::array blocks = blocks_in_turn();
  EXPECT_EQ(send_away(1), 1u);
  ASSERT_EQ(g_copied.count(blocks[1]), 1u);
  use(blocks[1] + 1, stream(1));
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_FALSE(is_away(blocks[1]));
  EXPECT_TRUE(is_away(blocks[2]));
  EXPECT_EQ(send_away(4), 3u) << "work on the last of them is not waited for, where there are others";
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_TRUE(is_away(blocks[1]));
  EXPECT_EQ(g_copied.count(blocks[1]), 2u);
  for (const CUdeviceptr block : blocks) free(block);
}

TEST_F(AtALimit, WhatIsFreedOnceItHasBeenCopiedServesAtOnce) {
  const std::array blocks = blocks_in_turn();
  EXPECT_EQ(send_away(1), 1u);
  ASSERT_EQ(g_copied.count(blocks[1]), 1u);
  free(blocks[1]);
  EXPECT_EQ(allocate(kChunk), blocks[1]);
  EXPECT_FALSE(is_away(blocks[2]));
  for (const CUdeviceptr block : blocks) free(block);
}

// An operation of many addresses touches its blocks in several holdings of the lock.
TEST_F(AtALimit, WhatAnOperationInFlightTouchesOnceItHasBeenCopiedStays) {
  const std::array blocks = blocks_in_turn();
  Operation operation;
  {
    ArenaLock lock;
    begin_operation({stream(1), false}, &operation);
    ASSERT_EQ(arena_send_away(*arena(), lock, 1), 1u);
    ASSERT_EQ(g_copied.count(blocks[1]), 1u);
    use_block(*arena()->blocks.find(blocks[1]), operation);
    order_operation(lock, operation);
    EXPECT_EQ(arena_send_away(*arena(), lock, 6), 4u);
  }
  EXPECT_FALSE(is_away(blocks[1]));
  queued();
  for (const CUdeviceptr block : blocks) free(block);
}

// That takes no lock: another thread's operation is in the way when a block is looked at, and has been queued when it
// is asked who is to be waited for.
TEST_F(AtALimit, WhatIsQueuedWhileItIsLookedAtLeaves) {
  const std::array blocks = blocks_in_turn();
  for (const CUdeviceptr block : blocks) use(block + 1, stream(1));
  std::promise<void> announced, looked_at, over;
  std::thread thread([&] {
    const std::uint64_t addresses[] = {blocks[0] + 1};
    Operation operation;
    EXPECT_TRUE(use_addresses({stream(2), false}, false, addresses, &operation));
    announced.set_value();
    looked_at.get_future().wait();
    queued();
    over.set_value();
  });
  announced.get_future().wait();
  use(blocks[1] + 1, stream(1));
  bool queued_since = false;
  {
    ArenaLock lock;
    Arena& arena = *memopt::agent::arena();
    const auto page_of = [&](CUdeviceptr block) {
      return arena.bootstrap.region().pages_of(*arena.blocks.find(block)).first;
    };
    const std::size_t first = page_of(blocks[0]), second = page_of(blocks[1]);
    bool seen = false;
    // What was used first is looked at first.
    const auto only_first = [&](std::size_t page) {
      seen = seen || page == first;
      if (page == second && seen && !std::exchange(queued_since, true)) {
        looked_at.set_value();
        over.get_future().wait();
      }
      return page == first;
    };
    EXPECT_EQ(arena_send_away(arena, lock, 1, only_first), 1u);
  }
  EXPECT_TRUE(queued_since);
  if (!queued_since) looked_at.set_value();
  thread.join();
  EXPECT_TRUE(is_away(blocks[0]));
  for (const CUdeviceptr block : blocks) free(block);
}

// Each with blocks of its own, which together are more than the limit, and with those of all others in its way.
TEST_F(AtALimit, ThreadsCopyAheadAndUseAndFree) {
  free(allocate(kChunk));
  ASSERT_EQ(arena_set_limit("16MiB").error, "");
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      std::vector<CUdeviceptr> blocks;
      for (int step = 0; step < 400; ++step) {
        const auto any = [&] { return blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size()); };
        if (blocks.size() < 4) {
          blocks.push_back(allocate((1 + random() % 3) * kChunk - 4096));
          EXPECT_NE(blocks.back(), 0u);
        } else if (random() % 6 == 0) {
          const auto block = any();
          free(*block);
          blocks.erase(block);
        }
        use(*any() + 1, stream(seed));
        EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
      }
      for (const CUdeviceptr block : blocks) free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ArenaLock lock;
  Arena& arena = *memopt::agent::arena();
  EXPECT_GT(arena.swaps.in_pages, 0u);
  EXPECT_TRUE(arena.copied_ahead.pages.empty()) << "of blocks that are no more";
  EXPECT_EQ(arena.bootstrap.region().away_bytes(), 0u);
  EXPECT_EQ(arena.host.free_pieces() * kChunk, arena.host.held_bytes());
}

}  // namespace
}  // namespace memopt::agent
