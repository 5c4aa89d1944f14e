#include "memory/free_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cudasim {
namespace {

TEST(FreeRanges, TakesTheLowestPlaceThatIsAligned) {
  FreeRanges ranges(100, 1000);
  EXPECT_EQ(ranges.take(10, 1), 100u);
  EXPECT_EQ(ranges.take(64, 128), 128u);
  EXPECT_EQ(ranges.take(18, 1), 110u);  // the gap that the alignment left
  EXPECT_EQ(ranges.take(1, 1), 192u);
  EXPECT_EQ(ranges.free_bytes(), 1000u - 10 - 64 - 18 - 1);
}

TEST(FreeRanges, RefusesWhatDoesNotFitAndChangesNothing) {
  FreeRanges ranges(0, 64);
  EXPECT_EQ(ranges.take(0, 1), std::nullopt);
  EXPECT_EQ(ranges.take(65, 1), std::nullopt);
  EXPECT_EQ(ranges.take(1, std::uint64_t{1} << 63), 0u);
  EXPECT_EQ(ranges.take(1, std::uint64_t{1} << 63), std::nullopt);
  EXPECT_FALSE(ranges.take_at(0, 2));   // its first byte is taken
  EXPECT_FALSE(ranges.take_at(63, 2));  // its last byte is outside
  EXPECT_EQ(ranges.free_bytes(), 63u);
  EXPECT_TRUE(ranges.take_at(1, 63));
  EXPECT_EQ(ranges.free_bytes(), 0u);
  EXPECT_FALSE(ranges.take_up_to(1).has_value());
}

TEST(FreeRanges, AlignmentAtTheTopOfTheNumbersDoesNotWrap) {
  FreeRanges ranges(UINT64_MAX - 100, 50);
  EXPECT_EQ(ranges.take(1, 4096), std::nullopt);
}

// Against an array of flags: same place for every take, nothing given twice, all free at the end.
TEST(FreeRanges, AgreesWithAnArrayOfFlags) {
  constexpr std::uint64_t kSize = 300;
  std::mt19937 random(7);
  std::vector<bool> taken(kSize, false);
  FreeRanges ranges(0, kSize);
  std::vector<FreeRanges::Range> live;
  const auto is_free = [&](std::uint64_t begin, std::uint64_t size) {
    if (begin + size > kSize) return false;
    for (std::uint64_t i = begin; i < begin + size; ++i) {
      if (taken[i]) return false;
    }
    return true;
  };
  const auto mark = [&](FreeRanges::Range range, bool value) {
    for (std::uint64_t i = range.begin; i < range.begin + range.size; ++i) taken[i] = value;
  };
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t size = 1 + random() % 40;
    switch (random() % 4) {
      case 0: {
        const std::uint64_t alignment = std::uint64_t{1} << (random() % 5);
        std::optional<std::uint64_t> expected;
        for (std::uint64_t at = 0; at < kSize && !expected; at += alignment) {
          if (is_free(at, size)) expected = at;
        }
        const auto got = ranges.take(size, alignment);
        ASSERT_EQ(got, expected) << "step " << step;
        if (got) live.push_back({*got, size});
        break;
      }
      case 1: {
        const std::uint64_t begin = random() % kSize;
        const bool got = ranges.take_at(begin, size);
        ASSERT_EQ(got, is_free(begin, size)) << "step " << step;
        if (got) live.push_back({begin, size});
        break;
      }
      case 2: {
        const auto got = ranges.take_up_to(size);
        if (!got) break;
        ASSERT_TRUE(is_free(got->begin, got->size));
        ASSERT_LE(got->size, size);
        live.push_back(*got);
        break;
      }
      default: {
        if (live.empty()) break;
        const std::size_t index = random() % live.size();
        std::swap(live[index], live.back());
        ranges.give(live.back().begin, live.back().size);
        mark(live.back(), false);
        live.pop_back();
        continue;
      }
    }
    if (!live.empty()) mark(live.back(), true);
    std::uint64_t free = 0;
    for (const bool flag : taken) free += flag ? 0 : 1;
    ASSERT_EQ(ranges.free_bytes(), free) << "step " << step;
  }
  for (const auto& range : live) ranges.give(range.begin, range.size);
  EXPECT_TRUE(ranges.all_free());
  EXPECT_EQ(ranges.take(kSize, 1), 0u);  // in one piece again
}

}  // namespace
}  // namespace cudasim
