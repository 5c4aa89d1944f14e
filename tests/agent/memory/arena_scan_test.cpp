// Blocks whose address a kernel has stored in device memory stay there at a limit.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <thread>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "tests/agent/memory/at_a_limit.h"

namespace memopt::agent {
namespace {

// A kernel has stored a block's address, so that another may use it without naming it.
TEST_F(AtALimit, WhatStandsOnTheDeviceAsAnAddressStays) {
  g_kernel.is_there = true;
  const CUdeviceptr table = allocate(kChunk);
  const CUdeviceptr stored = allocate(kChunk);
  const CUdeviceptr other = allocate(kChunk);
  const CUdeviceptr later = allocate(kChunk);
  for (const CUdeviceptr block : {stored, other, later, table}) use(block, stream(1));
  g_kernel.stored[table] = stored + 8;
  ASSERT_EQ(arena_set_limit("8MiB").error, "");
  const CUdeviceptr first = allocate(kChunk);
  EXPECT_FALSE(is_away(stored));
  EXPECT_TRUE(is_away(other));
  EXPECT_EQ(g_kernel.launches, 1);
  // From now on behind launches: the block that was used least lately is the next to leave, but its address is stored.
  g_kernel.stored[table] = later;
  launch(7, {table, later});
  EXPECT_EQ(g_kernel.launches, 2);
  for (const CUdeviceptr block : {table, first}) use(block, stream(1));
  const CUdeviceptr second = allocate(kChunk);
  EXPECT_FALSE(is_away(later));
  // A function behind which there was an address is looked at again, others are not.
  launch(8, {first});
  launch(8, {first});
  launch(8, {first});
  EXPECT_EQ(g_kernel.launches, 4);
  EXPECT_TRUE(is_suspect(7));
  for (const CUdeviceptr block : {table, stored, other, later, first, second}) free(block);
}

TEST_F(AtALimit, ALaunchThatWasNotMadeIsNotLookedAt) {
  const auto [table, stored] = blocks_at_a_limit("4MiB");
  const CUdeviceptr first = allocate(kChunk);
  EXPECT_TRUE(is_away(stored));
  g_kernel.stored[table] = stored;
  launch(9, {table, stored}, false);
  EXPECT_EQ(g_kernel.launches, 1);
  for (std::uint32_t function = 100; function < 100 + 2 * AddressScan::kScans; ++function)
    launch(function, {table}, false);
  const CUdeviceptr second = allocate(kChunk);
  launch(10, {table});
  EXPECT_EQ(g_kernel.launches, 2) << "there is room for it again";
  for (const CUdeviceptr block : {table, stored, first, second}) free(block);
}

// More launches than are kept in mind: all is looked at once more before something leaves.
TEST_F(AtALimit, WhatCouldNotBeLookedAtIsLookedForBeforeSomethingLeaves) {
  const auto [table, stored] = blocks_at_a_limit("6MiB");
  const CUdeviceptr first = allocate(kChunk);
  const CUdeviceptr second = allocate(kChunk);
  use(stored, stream(1));
  for (std::uint32_t function = 1000; function < 1000 + AddressScan::kScans; ++function) launch(function, {table});
  g_kernel.stored[table] = stored;
  launch(5000, {table, stored});
  const int before = g_kernel.launches;
  for (const CUdeviceptr block : {first, second, table}) {
    if (!is_away(block)) use(block, stream(1));
  }
  const CUdeviceptr third = allocate(kChunk);
  EXPECT_GT(g_kernel.launches, before);
  EXPECT_FALSE(is_away(stored));
  for (const CUdeviceptr block : {table, stored, first, second, third}) free(block);
}

// All else that used the block is over: that it is read is what its chunk waits for.
TEST_F(AtALimit, WhatIsFreedWhileAllIsLookedAtIsNotUnmappedBeforeThatIsOver) {
  const auto [other, freed] = blocks_at_a_limit("4MiB");
  const CUdeviceptr is_freed = freed;  // lambdas capture no structured binding
  bool met = false;
  g_kernel.while_it_runs = [&] {
    met = g_kernel.launches == 1;
    fake.busy = true;
    g_work.begin = is_freed;
    g_work.end = is_freed + kChunk;
    free(is_freed);
    {
      ArenaLock lock;
      arena()->bootstrap.trim(~std::size_t{0});
    }
    EXPECT_TRUE(fake.mapped.contains(is_freed));
    g_work = {};
    fake.busy = false;
  };
  const CUdeviceptr next = allocate(kChunk);
  EXPECT_TRUE(met);
  EXPECT_NE(next, 0u);
  for (const CUdeviceptr block : {other, next}) free(block);
}

// As on a simulated device without our kernel: blocks leave as ever, and it is not tried again.
TEST_F(AtALimit, AKernelThatDoesNothingIsGivenUp) {
  g_kernel.is_there = true;
  g_kernel.does_nothing = true;
  const CUdeviceptr block = allocate(kChunk);
  use(block, stream(1));
  ASSERT_EQ(arena_set_limit("2MiB").error, "");
  const CUdeviceptr first = allocate(kChunk);
  EXPECT_TRUE(is_away(block));
  const int launches = g_kernel.launches;
  launch(11, {first});
  EXPECT_EQ(g_kernel.launches, launches);
  EXPECT_NE(arena()->scans.why, "");
  for (const CUdeviceptr one : {block, first}) free(one);
}

}  // namespace
}  // namespace memopt::agent
