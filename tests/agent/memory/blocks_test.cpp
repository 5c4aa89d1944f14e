#include "agent/memory/blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace memopt::agent {
namespace {

TEST(BlockIndex, NumbersAreNeverUsedTwice) {
  BlockIndex index;
  ASSERT_TRUE(index.reserve_one());
  Block* const first = index.make();
  const std::uint64_t number = first->number;
  index.drop(first);
  ASSERT_TRUE(index.reserve_one());
  EXPECT_GT(index.make()->number, number);
}

class BlockIndexModel : public testing::TestWithParam<unsigned> {};

TEST_P(BlockIndexModel, AgreesWithAMap) {
  std::mt19937_64 random(GetParam());
  BlockIndex index;
  std::unordered_map<std::uint64_t, Block*> model;
  for (int step = 0; step < 40000; ++step) {
    // Few distinct addresses, so that they collide and come again.
    const std::uint64_t base = 0x7f0000000000u + random() % 6000 * 512;
    if (const auto known = model.find(base); known != model.end()) {
      ASSERT_EQ(index.find(base), known->second);
      index.erase(base);
      index.drop(known->second);
      model.erase(known);
    } else {
      ASSERT_EQ(index.find(base), nullptr);
      ASSERT_TRUE(index.reserve_one());
      Block* const block = index.make();
      block->base = base;
      index.insert(block);
      model.emplace(base, block);
    }
    ASSERT_EQ(index.size(), model.size());
  }
  for (const auto& [base, block] : model) ASSERT_EQ(index.find(base), block);
  index.clear();
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(index.find(model.begin()->first), nullptr);
}
INSTANTIATE_TEST_SUITE_P(Seeds, BlockIndexModel, testing::Range(1u, 5u));

}  // namespace
}  // namespace memopt::agent
