#include "agent/operations/pinned_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace memopt::agent {
namespace {

class PinnedMemory : public testing::Test {
 protected:
  void SetUp() override { forget_pinned_memory_after_fork(); }
};

TEST_F(PinnedMemory, RangesAreHalfOpen) {
  pinned_memory_added(1000, 100);
  EXPECT_FALSE(is_pinned_memory(999));
  EXPECT_TRUE(is_pinned_memory(1000));
  EXPECT_TRUE(is_pinned_memory(1099));
  EXPECT_FALSE(is_pinned_memory(1100));
  EXPECT_EQ(pinned_memory_removed(1001), 0u) << "not where it begins";
  EXPECT_EQ(pinned_memory_removed(1000), 100u);
  EXPECT_FALSE(is_pinned_memory(1000));
  EXPECT_EQ(pinned_memory_removed(1000), 0u);
}

TEST_F(PinnedMemory, NothingIsNothing) {
  pinned_memory_added(0, 100);
  pinned_memory_added(1000, 0);
  EXPECT_FALSE(is_pinned_memory(50));
  EXPECT_FALSE(is_pinned_memory(1000));
}

TEST_F(PinnedMemory, ANewRangeReplacesWhatItOverlaps) {
  pinned_memory_added(1050, 10);  // freed in a way that nobody told
  pinned_memory_added(1000, 100);
  EXPECT_TRUE(is_pinned_memory(1070));
  EXPECT_EQ(pinned_memory_removed(1050), 0u);
  pinned_memory_added(900, 150);
  EXPECT_TRUE(is_pinned_memory(950));
  EXPECT_EQ(pinned_memory_removed(1000), 0u);
}

TEST_F(PinnedMemory, ManyRangesAgainstAModel) {
  std::mt19937 random(1);
  std::map<std::uint64_t, std::size_t> model;
  constexpr std::uint64_t kStep = 4096;
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t address = kStep * (1 + random() % 2000);
    if (model.contains(address)) {
      ASSERT_EQ(pinned_memory_removed(address), model[address]);
      model.erase(address);
    } else {
      const std::size_t bytes = 1 + random() % kStep;
      pinned_memory_added(address, bytes);
      model[address] = bytes;
    }
    const std::uint64_t asked = kStep + random() % (2000 * kStep);
    const auto after = model.upper_bound(asked);
    const bool inside = after != model.begin() && asked - std::prev(after)->first < std::prev(after)->second;
    ASSERT_EQ(is_pinned_memory(asked), inside) << asked;
  }
}

}  // namespace
}  // namespace memopt::agent
