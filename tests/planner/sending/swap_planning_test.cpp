// Searches for swaps that a program waits for.
#include "planner/sending/swap_planning.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <numeric>
#include <string>

namespace memopt::planner {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max() / 16;

// Forward and backward through a network whose outputs come to `load`, within half of it.
SwapTask half_of_a_network() {
  constexpr std::uint32_t kLayers = 60;
  SwapTask task;
  swap::Problem& problem = task.problem;
  std::uint64_t load = 0;
  double now = 0;
  const auto operation = [&](swap::Kind kind, std::uint32_t block, double length) {
    problem.operations.push_back({kind, block, now});
    now += length;
  };
  for (std::uint32_t k = 0; k < kLayers; ++k) {
    problem.blocks.push_back({.id = k, .bytes = (2 + k % 5) * kMiB + 512 * k});
    load += problem.blocks[k].bytes;
    operation(swap::Kind::kMalloc, k, 10);
    operation(swap::Kind::kWrite, k, 30'000.0 + 1000 * (k % 7));
  }
  for (std::uint32_t k = kLayers; k-- > 0;) {
    operation(swap::Kind::kRead, k, 60'000);
    operation(swap::Kind::kFree, k, 10);
  }
  problem.period = now;
  problem.align = 512;
  task.ranks.resize(problem.operations.size());
  std::iota(task.ranks.begin(), task.ranks.end(), 1);
  task.terms = {25, 25, 8000, 8000, 2 * kMiB, load / 2, 0};
  task.unswapped = load;
  return task;
}

// A search that would go on for ever ends when the program would not wait any longer, with what was found.
TEST(WaitedSearch, WhatWasFoundCountsWhenTheTimeIsUp) {
  const SwapTask task = half_of_a_network();
  WaitedSearch search;
  search.in_all = std::chrono::seconds(3);
  search.attempts = kUnlimited;
  std::string why;
  const auto found = plan_waited_swaps(task, why, search);
  ASSERT_TRUE(found) << why;
  EXPECT_LE(found->footprint, task.terms.memory_limit);
}

TEST(WaitedSearch, EndsBeforeTheProgramGivesUp) {
  for (const int seconds : {2, 10, 100}) {
    const WaitedSearch search = waited_search(std::chrono::seconds(seconds));
    EXPECT_EQ(search.longest, std::chrono::milliseconds(700 * seconds));
    EXPECT_EQ(search.in_all, std::chrono::milliseconds(900 * seconds));
  }
  EXPECT_EQ(waited_search(std::chrono::seconds(10)).in_all, WaitedSearch().in_all);
}

TEST(WaitedSearch, IsTheSameEachTime) {
  const SwapTask task = half_of_a_network();
  std::string why;
  WaitedSearch search;
  // On any machine.
  search.in_all = std::chrono::hours(1);
  search.longest = std::chrono::nanoseconds(0);
  search.attempts = 1000;
  const auto one = plan_waited_swaps(task, why, search);
  const auto other = plan_waited_swaps(task, why, search);
  ASSERT_TRUE(one && other) << why;
  EXPECT_EQ(one->added_ns, other->added_ns);
  EXPECT_EQ(one->decisions.swaps.size(), other->decisions.swaps.size());
  EXPECT_EQ(one->footprint, other->footprint);
}

}  // namespace
}  // namespace memopt::planner
