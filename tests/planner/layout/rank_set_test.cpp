#include "planner/layout/rank_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace memopt::layout {
namespace {

TEST(RankSet, IsASetWithNeighbours) {
  std::mt19937_64 random(1);
  for (const std::uint32_t end : {1u, 2u, 63u, 64u, 65u, 4096u, 4097u, 300'000u}) {
    RankSet ranks(end);
    std::set<std::uint32_t> expected;
    for (int step = 0; step < 5000; ++step) {
      const auto number = static_cast<std::uint32_t>(random() % end);
      if (random() % 2 == 0) {
        ranks.insert(number);
        expected.insert(number);
      } else {
        ranks.erase(number);
        expected.erase(number);
      }
      ASSERT_EQ(ranks.first(), expected.empty() ? RankSet::kNone : *expected.begin());
      const auto asked = static_cast<std::uint32_t>(random() % end);
      const auto above = expected.upper_bound(asked);
      ASSERT_EQ(ranks.above(asked), above == expected.end() ? RankSet::kNone : *above);
      const auto below = expected.lower_bound(asked);
      ASSERT_EQ(ranks.below(asked), below == expected.begin() ? RankSet::kNone : *std::prev(below));
    }
  }
}

}  // namespace
}  // namespace memopt::layout
