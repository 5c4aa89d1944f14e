// Swaps after which no operation finds too much: how much is there, by counting.
#include "planner/swap/search/covering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/swap/simulation/verify.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/swap/busy_problem.h"
#include "tests/planner/swap/layers.h"
#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

using layout::kSanitized;
using testing::busy_problem;

// What is there at each operation, block by block.
std::uint64_t most_there(const Problem& problem, const Liveness& liveness, const std::vector<Swap>& swaps) {
  const std::uint64_t n = liveness.operations;
  std::vector<std::uint64_t> there(n);
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    const bool swapped = std::any_of(swaps.begin(), swaps.end(), [b](const Swap& swap) { return swap.block == b; });
    const std::uint64_t bytes = problem.blocks[b].bytes;
    const std::uint64_t taken = swapped ? (bytes + problem.chunk - 1) / problem.chunk * problem.chunk : bytes;
    const Lifetime& life = liveness.of[b];
    const std::uint64_t begin = problem.blocks[b].persistent ? 0 : life.start;
    const std::uint64_t end = problem.blocks[b].persistent ? n : life.freed + 1;
    for (std::uint64_t at = begin; at < end; ++at) {
      const bool away = std::any_of(swaps.begin(), swaps.end(), [&](const Swap& swap) {
        if (swap.block != b) return false;
        const std::uint64_t back = swap.returns() ? swap.need : life.freed + 1;
        return (at > swap.out_after && at < back) || (problem.blocks[b].persistent && at + n < back);
      });
      if (!away) there[at % n] += taken;
    }
  }
  return *std::max_element(there.begin(), there.end());
}

std::optional<Decisions> cover_load(const Problem& problem, const Liveness& liveness, std::uint64_t goal) {
  Covering covering(problem, liveness);
  return covering.cover(goal) ? std::optional(covering.decisions()) : std::nullopt;
}

TEST(Covering, LeavesNoMoreThanTheGoalAndNoSwapTooMany) {
  int covered = 0, swaps = 0;
  for (std::uint64_t seed = 0; seed < (kSanitized ? 3 : 9); ++seed) {
    Problem problem = seed == 0 ? testing::layers(40, 1 << 20) : busy_problem(seed);
    if (seed % 2 != 0) problem.blocks[seed].pinned = true;
    const Liveness liveness = find_liveness(problem);
    EXPECT_TRUE(cover_load(problem, liveness, liveness.peak).value().swaps.empty()) << seed;
    for (const std::uint64_t part : {90, 65, 45}) {
      const std::uint64_t goal = liveness.peak * part / 100;
      const auto found = cover_load(problem, liveness, goal);
      if (!found) continue;
      ++covered;
      swaps += static_cast<int>(found->swaps.size());
      EXPECT_EQ(find_swap_fault(problem, liveness, *found), std::nullopt) << seed << ", " << part;
      EXPECT_LE(most_there(problem, liveness, found->swaps), goal) << seed << ", " << part;
      for (std::size_t k = 0; k < found->swaps.size(); ++k) {
        std::vector<Swap> others = found->swaps;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
        EXPECT_GT(most_there(problem, liveness, others), goal) << seed << ", " << part << ": swap " << k;
      }
    }
  }
  EXPECT_GT(covered, kSanitized ? 5 : 15);
  EXPECT_GT(swaps, 5 * covered);
}

TEST(Covering, WhatOneOperationNeedsCantBeLess) {
  const testing::Plan plan = testing::two_blocks();
  const Liveness liveness = find_liveness(plan.problem);
  EXPECT_FALSE(cover_load(plan.problem, liveness, 99).has_value());
}

// Asked before each swap, of which very many take long.
TEST(Covering, EndsWhenItIsToldTo) {
  const Problem problem = testing::layers(40, 1 << 20);
  const Liveness liveness = find_liveness(problem);
  const std::uint64_t goal = liveness.peak / 2;
  Covering whole(problem, liveness);
  ASSERT_TRUE(whole.cover(goal));
  int too_few = 0, some_more = 0;
  for (int most = 0;; ++most) {
    Covering covering(problem, liveness);
    int asked = 0;
    const bool covers = covering.cover(goal, {}, [&] { return asked++ >= most; });
    const auto used = std::count(covering.used().begin(), covering.used().end(), 1);
    EXPECT_EQ(covers, covering.load() <= goal) << most;
    EXPECT_LE(used, most);
    EXPECT_LE(asked, most + 1);
    if (asked <= most) {
      EXPECT_EQ(covering.used(), whole.used());
      break;
    }
    too_few += covers ? 0 : 1;
    some_more += covers ? 1 : 0;
  }
  EXPECT_GT(too_few, 10);
  EXPECT_GT(some_more, 10);
}

}  // namespace
}  // namespace memopt::swap
