#include "agent/status/block_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace memopt::agent {
namespace {

using shm::Bytes;

TEST(BlockTable, SumsFollowInsertAndErase) {
  MemoryGauge gauge;
  BlockTable table(gauge);
  table.insert(0x1000, Bytes(10));
  table.insert(0x2000, Bytes(20));
  EXPECT_EQ(gauge.read().live, Bytes(30));
  EXPECT_EQ(gauge.read().blocks, shm::BlockCount(2));
  Bytes size;
  EXPECT_TRUE(table.erase(0x1000, &size));
  EXPECT_EQ(size, Bytes(10));
  EXPECT_FALSE(table.erase(0x1000, &size));
  EXPECT_FALSE(table.erase(0, &size));
  EXPECT_EQ(gauge.read().live, Bytes(20));
  EXPECT_EQ(gauge.read().peak, Bytes(30));
}

TEST(BlockTable, ABlockAtAKnownAddressReplacesIt) {
  MemoryGauge gauge;
  BlockTable table(gauge);
  table.insert(0x1000, Bytes(10));
  table.insert(0x1000, Bytes(7));
  EXPECT_EQ(gauge.read().live, Bytes(7));
  EXPECT_EQ(gauge.read().blocks, shm::BlockCount(1));
  EXPECT_EQ(gauge.read().peak, Bytes(10));
}

// Against a map, with addresses close together and far apart, so that chains form, wrap and are closed again.
TEST(BlockTable, AgreesWithAMap) {
  MemoryGauge gauge;
  BlockTable table(gauge);
  std::map<DeviceAddress, std::uint64_t> expected;
  std::mt19937_64 random(1);
  for (int step = 0; step < 200000; ++step) {
    const DeviceAddress address = (random() % 2 == 0 ? 0x7f0000000000ull : 0x10000ull) + (1 + random() % 3000) * 512;
    if (random() % 2 == 0) {
      const std::uint64_t size = 1 + random() % 1000;
      table.insert(address, Bytes(size));
      expected[address] = size;
    } else {
      Bytes size;
      const auto known = expected.find(address);
      ASSERT_EQ(table.erase(address, &size), known != expected.end());
      if (known != expected.end()) {
        ASSERT_EQ(size, Bytes(known->second));
        expected.erase(known);
      }
    }
  }
  std::map<DeviceAddress, std::uint64_t> seen;
  table.for_each([&](DeviceAddress address, Bytes size) { seen[address] = size.value(); });
  EXPECT_EQ(seen, expected);
  std::uint64_t live = 0;
  for (const auto& [address, size] : expected) live += size;
  EXPECT_EQ(gauge.read().live, Bytes(live));
  EXPECT_EQ(gauge.read().blocks, shm::BlockCount(expected.size()));
}

TEST(BlockTable, ThreadsDoNotDisturbEachOther) {
  MemoryGauge gauge;
  BlockTable table(gauge);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t round = 0; round < 20; ++round) {
        for (std::uint64_t i = 1; i <= 500; ++i) table.insert((thread << 40) + i * 256, Bytes(i));
        Bytes size;
        for (std::uint64_t i = 1; i <= 500; ++i) {
          ASSERT_TRUE(table.erase((thread << 40) + i * 256, &size));
          ASSERT_EQ(size, Bytes(i));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gauge.read().live, Bytes(0));
  EXPECT_EQ(gauge.read().blocks, shm::BlockCount(0));
  EXPECT_GE(gauge.read().peak, Bytes(500 * 501 / 2));
  EXPECT_EQ(gauge.read().untracked, 0u);
}

TEST(BlockTable, AChildBeginsEmpty) {
  MemoryGauge gauge;
  BlockTable table(gauge);
  table.insert(0x1000, Bytes(10));
  table.reset_after_fork();
  gauge.reset();
  Bytes size;
  EXPECT_FALSE(table.erase(0x1000, &size));
  table.insert(0x1000, Bytes(3));
  EXPECT_EQ(gauge.read().live, Bytes(3));
  EXPECT_EQ(gauge.read().peak, Bytes(3));
}

}  // namespace
}  // namespace memopt::agent
