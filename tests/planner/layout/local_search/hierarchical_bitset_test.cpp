#include "planner/layout/local_search/hierarchical_bitset.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace memopt::layout {
namespace {

TEST(HierarchicalBitset, IsASetWithNeighbours) {
  std::mt19937_64 random(1);
  for (const std::uint32_t end : {1u, 2u, 63u, 64u, 65u, 4096u, 4097u, 300'000u}) {
    HierarchicalBitset bitset(end);
    std::set<std::uint32_t> expected;
    for (int step = 0; step < 5000; ++step) {
      const auto number = static_cast<std::uint32_t>(random() % end);
      if (random() % 2 == 0) {
        bitset.insert(number);
        expected.insert(number);
      } else {
        bitset.erase(number);
        expected.erase(number);
      }
      ASSERT_EQ(bitset.first(), expected.empty() ? HierarchicalBitset::kNone : *expected.begin());
      const auto query = static_cast<std::uint32_t>(random() % end);
      const auto above = expected.upper_bound(query);
      ASSERT_EQ(bitset.above(query), above == expected.end() ? HierarchicalBitset::kNone : *above);
      const auto below = expected.lower_bound(query);
      ASSERT_EQ(bitset.below(query), below == expected.begin() ? HierarchicalBitset::kNone : *std::prev(below));
    }
  }
}

}  // namespace
}  // namespace memopt::layout
