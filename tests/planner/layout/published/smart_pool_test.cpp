#include "planner/layout/published/smart_pool.h"

#include <gtest/gtest.h>

#include "planner/layout/published/power_of_two.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

using Offsets = std::vector<std::uint64_t>;

// 10 and 6 leave a hole of 4 at the bottom and one of 2 below the third, both while the last is needed.
Problem two_holes() {
  Problem problem;
  problem.add(10, {0, 1});
  problem.add(9, {1, 10}, 1, 14);
  problem.add(6, {1, 10}, 1, 4);
  problem.add(3, {1, 10}, 1, 10);
  return problem;
}

TEST(SmartPool, LargestFirstOnTopOfEachOther) {
  Problem problem;
  problem.add(1, {0, 4});
  problem.add(5, {0, 2});
  problem.add(3, {1, 4});
  EXPECT_EQ(smart_pool_best_fit(problem, {}).solution.offsets, (Offsets{8, 0, 5}));
  EXPECT_EQ(smart_pool_first_fit(problem, {}).solution.offsets, (Offsets{8, 0, 5}));
}

TEST(SmartPool, BestFitTakesTheSmallestHoleAndFirstFitTheLowest) {
  Problem problem = two_holes();
  problem.add(1, {2, 3});
  EXPECT_EQ(smart_pool_best_fit(problem, {}).solution.offsets.back(), 13U);
  EXPECT_EQ(smart_pool_first_fit(problem, {}).solution.offsets.back(), 0U);
}

TEST(SmartPool, AHoleMustBeLargeEnoughForTheAlignedBuffer) {
  Problem problem = two_holes();
  problem.add(1, {2, 3}, 8);
  EXPECT_EQ(smart_pool_best_fit(problem, {}).solution.offsets.back(), 0U);
  problem.buffers.back() = {4, 3, kAnywhere, 4, 1};
  EXPECT_EQ(smart_pool_best_fit(problem, {}).solution.offsets.back(), 0U);
  problem.buffers.back() = {5, 3, kAnywhere, 4, 1};
  EXPECT_EQ(smart_pool_best_fit(problem, {}).solution.offsets.back(), 24U);
}

TEST(SmartPool, UsesWhatLiesBetweenTheIntervalsOfOthers) {
  Problem problem;
  const Interval twice[] = {{0, 2}, {6, 8}};
  problem.add(5, twice);
  problem.add(4, {2, 6});
  problem.add(3, {4, 7});
  EXPECT_EQ(smart_pool_first_fit(problem, {}).solution.offsets, (Offsets{0, 0, 5}));
}

// The fast search for holes against one that compares every pair of buffers.
TEST(SmartPool, IsTheSameAsComparingEveryPair) {
  std::mt19937_64 random(5);
  for (int round = 0; round < rounds(60); ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 1500, .bytes = 50, .times = 200});
    std::vector<std::size_t> order(problem.buffers.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t i) {
        return std::pair(problem.buffers[i].fixed == kAnywhere, ~problem.buffers[i].bytes);
      };
      return key(a) < key(b);
    });
    Offsets offsets(problem.buffers.size());
    std::vector<std::size_t> placed;
    for (const std::size_t i : order) {
      const Buffer& buffer = problem.buffers[i];
      std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
      for (const std::size_t j : placed) {
        if (brute_force::conflict(problem, i, offsets[j], j, offsets[j])) {
          taken.emplace_back(offsets[j], offsets[j] + problem.buffers[j].bytes);
        }
      }
      std::sort(taken.begin(), taken.end());
      std::uint64_t top = 0;
      std::uint64_t place = kAnywhere;
      const auto up = [&](std::uint64_t offset) {
        return (offset + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
      };
      for (const auto& [bottom, its_top] : taken) {
        if (place == kAnywhere && up(top) + buffer.bytes <= bottom) place = up(top);
        top = std::max(top, its_top);
      }
      if (place == kAnywhere) place = up(top);
      offsets[i] = buffer.fixed != kAnywhere ? buffer.fixed : place;
      placed.push_back(i);
    }
    ASSERT_EQ(smart_pool_first_fit(problem, {}).solution.offsets, offsets);
  }
}

TEST(SmartPool, EndsWhenItIsCancelled) {
  std::mt19937_64 random(6);
  Problem problem;
  for (int i = 0; i < 1000; ++i) problem.add(1 + random() % 10, {random() % 10, 10 + random() % 10});
  const std::atomic<bool> cancelled{true};
  const Outcome outcome = smart_pool_best_fit(problem, {.cancelled = &cancelled});
  EXPECT_FALSE(outcome.found(problem.buffers.size()));
  EXPECT_FALSE(outcome.optimal);
  EXPECT_GT(outcome.lower_bound, 0U);
}

TEST(PowerOfTwo, PlacesAtMultiplesOfTheRoundedSize) {
  Problem problem;
  problem.add(5, {0, 2});
  problem.add(3, {0, 2});
  problem.add(9, {0, 2});
  const Outcome outcome = power_of_two(problem, {});
  EXPECT_EQ(outcome.solution.offsets, (Offsets{16, 24, 0}));
  EXPECT_EQ(outcome.solution.height, 27U);
}

TEST(PowerOfTwo, DoesNotSupportWhatMightNotBeRepresentable) {
  Problem problem;
  problem.add(std::uint64_t{1} << 61, {0, 1});
  EXPECT_NE(power_of_two_unsupported(problem), std::nullopt);
}

}  // namespace
}  // namespace memopt::layout
