#include "memory/registered_ranges.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace cudasim {
namespace {

TEST(RegisteredRanges, EndsAreExclusive) {
  RegisteredRanges ranges;
  EXPECT_FALSE(ranges.contains(0));
  ranges.insert(100, 200);
  ranges.insert(50, 60);
  ranges.insert(200, 201);
  for (const std::uintptr_t inside : {50, 59, 100, 150, 199, 200}) EXPECT_TRUE(ranges.contains(inside)) << inside;
  for (const std::uintptr_t outside : {0, 49, 60, 99, 201, 1000}) EXPECT_FALSE(ranges.contains(outside)) << outside;
  ranges.erase(100);
  EXPECT_FALSE(ranges.contains(150));
  EXPECT_TRUE(ranges.contains(200));
  ranges.erase(7);  // never was
  EXPECT_TRUE(ranges.contains(55));
}

TEST(RegisteredRanges, OutgrowsItsFirstTable) {
  RegisteredRanges ranges;
  for (std::uintptr_t i = 1000; i > 0; --i) ranges.insert(i * 10, i * 10 + 5);
  for (std::uintptr_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(ranges.contains(i * 10 + 4));
    ASSERT_FALSE(ranges.contains(i * 10 + 5));
  }
}

// Ranges that stay are seen, ranges that never were are not, whatever comes and goes beside them.
TEST(RegisteredRanges, ReadersAreRightWhileItChanges) {
  RegisteredRanges ranges;
  for (std::uintptr_t i = 1; i <= 20; ++i) ranges.insert(i * 1000, i * 1000 + 10);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      do {
        for (std::uintptr_t i = 1; i <= 20; ++i) {
          if (!ranges.contains(i * 1000 + 9)) ++wrong;
          if (ranges.contains(i * 1000 + 10)) ++wrong;
        }
      } while (!stop);
    });
  }
  for (int round = 0; round < 300; ++round) {
    for (std::uintptr_t i = 1; i <= 20; ++i) ranges.insert(i * 1000 + 500, i * 1000 + 600);
    for (std::uintptr_t i = 1; i <= 20; ++i) ranges.erase(i * 1000 + 500);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cudasim
