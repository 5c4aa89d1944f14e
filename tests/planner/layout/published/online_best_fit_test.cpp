#include "planner/layout/published/online_best_fit.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "planner/layout/problem/validation.h"
#include "planner/layout/published/free_ranges.h"
#include "tests/planner/layout/random_lifetimes.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

using Offsets = std::vector<std::uint64_t>;

Offsets offsets_of(const Problem& problem) { return online_best_fit(problem, {}).solution.offsets; }

TEST(OnlineBestFit, TakesTheSmallestHoleThatIsLargeEnough) {
  Problem problem;
  problem.add(10, {0, 1});
  problem.add(9, {0, 9});
  problem.add(6, {0, 1});
  problem.add(5, {0, 9});
  problem.add(4, {1, 9});  // into that of 6
  problem.add(3, {1, 9});  // into what is left of 10, since 2 are left of 6
  problem.add(2, {1, 9});
  EXPECT_EQ(offsets_of(problem), (Offsets{0, 10, 19, 25, 19, 0, 23}));
}

TEST(OnlineBestFit, FreedNeighboursAreOneHole) {
  Problem problem;
  for (int i = 0; i < 3; ++i) problem.add(4, {0, std::uint64_t(1 + (i * 2) % 3)});  // the middle one ends last
  problem.add(1, {0, 9});
  problem.add(12, {3, 9});
  EXPECT_EQ(offsets_of(problem), (Offsets{0, 4, 8, 12, 0}));
}

TEST(OnlineBestFit, WhatIsFreeBelowTheTopIsUsed) {
  Problem problem;
  problem.add(4, {0, 9});
  problem.add(4, {0, 1});
  problem.add(6, {1, 9});
  EXPECT_EQ(offsets_of(problem), (Offsets{0, 4, 4}));
  problem.buffers.back().alignment = 8;
  problem.add(4, {2, 9});  // in front of the aligned one
  EXPECT_EQ(offsets_of(problem), (Offsets{0, 4, 8, 4}));
}

TEST(OnlineBestFit, AHoleMustBeLargeEnoughForTheAlignedBuffer) {
  Problem problem;
  problem.add(9, {0, 9});
  problem.add(8, {0, 1});
  problem.add(1, {0, 9});
  problem.add(8, {1, 9}, 4);  // 9 to 17 has no 8 from a multiple of 4
  problem.add(4, {1, 9}, 4);
  EXPECT_EQ(offsets_of(problem), (Offsets{0, 9, 17, 20, 12}));
}

TEST(OnlineBestFit, FixedBuffersHaveTheirBytesAllTheTime) {
  Problem problem;
  problem.add(4, {5, 6}, 1, 3);
  problem.add(4, {0, 1}, 1, 5);
  problem.add(3, {0, 1});
  problem.add(1, {0, 1});
  EXPECT_EQ(offsets_of(problem), (Offsets{3, 5, 0, 9}));
}

// Free ranges as a map, in which all are looked at.
class SlowRanges {
 public:
  // Bytes of the smallest that has room, or kAnywhere.
  std::uint64_t smallest(std::uint64_t bytes, std::uint64_t alignment) const {
    std::uint64_t smallest = kAnywhere;
    for (const auto& [begin, its] : free_) {
      if (align_up(begin, alignment) + bytes <= begin + its) smallest = std::min(smallest, its);
    }
    return smallest;
  }
  std::uint64_t bytes_around(std::uint64_t place) const {
    const auto range = std::prev(free_.upper_bound(place));
    return range->second;
  }
  void use(std::uint64_t begin, std::uint64_t end) {
    auto range = free_.upper_bound(begin);
    if (range == free_.begin()) return;
    --range;
    const auto [its_begin, its_bytes] = *range;
    if (its_begin + its_bytes <= begin) return;
    free_.erase(range);
    if (begin > its_begin) free_[its_begin] = begin - its_begin;
    if (its_begin + its_bytes > end) free_[end] = its_begin + its_bytes - end;
  }
  void give(std::uint64_t begin, std::uint64_t bytes) {
    free_[begin] = bytes;
    auto range = free_.find(begin);
    if (const auto next = std::next(range); next != free_.end() && next->first == begin + bytes) {
      range->second += next->second;
      free_.erase(next);
    }
    if (range == free_.begin()) return;
    const auto previous = std::prev(range);
    if (previous->first + previous->second != begin) return;
    previous->second += range->second;
    free_.erase(range);
  }

 private:
  std::map<std::uint64_t, std::uint64_t> free_;
};

// No bytes are taken twice, and with few free ranges they are of the smallest that has room, or of one hardly larger.
TEST(FreeRanges, AgreeWithAMap) {
  std::mt19937_64 random(5);
  int holes = 0, best = 0;
  for (int round = 0; round < rounds(200); ++round) {
    FreeRanges ranges(16);
    SlowRanges slow;
    std::uint64_t top = 0;
    struct Taken {
      FreeRanges::Range range;
      std::uint64_t begin, bytes;
    };
    std::vector<Taken> taken;
    for (int step = 0; step < 400; ++step) {
      if (taken.size() > 6 || (!taken.empty() && random() % 2 == 0)) {
        const std::size_t i = random() % taken.size();
        ranges.give(taken[i].range);
        slow.give(taken[i].begin, taken[i].bytes);
        taken.erase(taken.begin() + std::ptrdiff_t(i));
        continue;
      }
      const std::uint64_t bytes = 1 + random() % 300, alignment = random() % 3 == 0 ? 1 + random() % 8 : 1;
      const std::uint64_t hole = slow.smallest(bytes, alignment);
      const FreeRanges::Range range = ranges.take(bytes, alignment);
      const std::uint64_t begin = ranges.begin_of(range);
      ASSERT_EQ(begin % alignment, 0u);
      for (const Taken& other : taken) ASSERT_TRUE(begin + bytes <= other.begin || other.begin + other.bytes <= begin);
      ASSERT_EQ(begin + bytes > top, hole == kAnywhere);
      if (hole != kAnywhere) {
        // One of the same list, or of the next one that has any.
        EXPECT_LE(slow.bytes_around(begin), hole + hole / 32);
        best += slow.bytes_around(begin) == hole;
        ++holes;
      }
      if (begin + bytes > top) {  // new ones, and what lies free below them
        slow.give(top, begin + bytes - top);
        top = begin + bytes;
      }
      slow.use(begin, begin + bytes);
      taken.push_back({range, begin, bytes});
    }
  }
  EXPECT_GT(best, holes * 9 / 10);
}

TEST(OnlineBestFit, IsCloseToTheLoadOfRandomLifetimes) {
  const Problem problem = random_lifetimes(20'000, 6);
  const Outcome outcome = online_best_fit(problem, {});
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
  EXPECT_LT(double(outcome.solution.height), 1.06 * double(load_bound(problem)));
}

}  // namespace
}  // namespace memopt::layout
