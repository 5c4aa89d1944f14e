// The pieces of a pool: who may have which, against bytes counted one by one.
#include "memory/pool_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "config.h"
#include "counters.h"
#include "pools.h"

namespace cudasim {
namespace {

Config config_of(std::uint64_t capacity) {
  Config config;
  config.device.capacity = capacity;
  return config;
}

struct PoolSpaceTest : testing::Test {
  FreedByPtr freed(std::uint64_t stream) { return std::make_shared<const FreedBy>(FreedBy{nullptr, stream}); }
  static bool nobody(const FreedBy&) { return false; }

  Config config = config_of(128u << 20);
  Counters counters;
  DeviceSpace device{config, counters};
  PoolSpace pool{device, 0};
};

TEST_F(PoolSpaceTest, GrowsInStepsAndByWhatIsLeft) {
  EXPECT_FALSE(pool.take(512, nobody));
  const auto first = pool.grow(512);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size, PoolSpace::kStep);
  const auto second = pool.grow(PoolSpace::kStep + 1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->size, PoolSpace::kStep + kGranule);
  EXPECT_EQ(pool.grow(50u << 20)->size, 50u << 20);
  EXPECT_EQ(pool.grow(1)->size, kGranule) << "less than a step is left";
  EXPECT_EQ(pool.held(), device.physical.held());
  EXPECT_FALSE(pool.grow(14u << 20));
  pool.trim(0, [](const PoolSpace::Segment&) {});
  EXPECT_EQ(device.physical.held(), 0u);
}

TEST_F(PoolSpaceTest, OneRunMayHaveSeveralFormerOwners) {
  pool.grow(3 * 512);
  const CUdeviceptr base = pool.take(3 * 512, nobody)->base;
  const FreedByPtr one = freed(1), two = freed(2);
  pool.give(base, 512, one);
  pool.give(base + 512, 512, two);
  pool.give(base + 1024, 512, one);
  const auto first_stream = [](const FreedBy& by) { return by.stream == 1; };
  EXPECT_EQ(pool.take(512, first_stream)->base, base);
  pool.give(base, 512, one);
  const auto all = pool.take(3 * 512, [](const FreedBy&) { return true; });
  ASSERT_TRUE(all);
  EXPECT_EQ(all->base, base) << "the smallest run that is large enough";
  EXPECT_EQ(all->freed_by, (std::vector<FreedByPtr>{one, two, one}));
}

TEST_F(PoolSpaceTest, OnlyWhollyFreeAndSettledSegmentsGo) {
  const CUdeviceptr base = pool.grow(512)->base;
  EXPECT_EQ(pool.take(512, nobody)->base, base);
  int released = 0;
  const auto count = [&](const PoolSpace::Segment&) { ++released; };
  pool.trim(0, count);
  EXPECT_EQ(released, 0);
  pool.give(base, 512, freed(1));
  pool.trim(0, count);
  EXPECT_EQ(released, 0);
  pool.settle([](const FreedBy& by) { return by.stream == 2; });
  pool.trim(0, count);
  EXPECT_EQ(released, 0);
  pool.settle([](const FreedBy& by) { return by.stream == 1; });
  pool.trim(PoolSpace::kStep, count);
  EXPECT_EQ(released, 0) << "so much is to be kept";
  pool.trim(PoolSpace::kStep - 1, count);
  EXPECT_EQ(released, 0);
  pool.trim(0, count);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(pool.held(), 0u);
}

TEST_F(PoolSpaceTest, TakesWhatACountOfUnitsAllows) {
  constexpr std::uint64_t kUnits = 24;
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    PoolSpace fresh{device, 0};
    const CUdeviceptr origin = fresh.grow(512)->base;
    // Only the first units are played with.
    ASSERT_EQ(fresh.take(PoolSpace::kStep, nobody)->base, origin);
    std::vector<int> state(kUnits, 0);  // 0: settled and free; n > 0: freed on stream n; -1: taken
    fresh.give(origin, kUnits * 512, nullptr);
    const std::vector<FreedByPtr> by = {nullptr, freed(1), freed(2)};
    std::map<std::uint64_t, std::uint64_t> taken;  // units
    for (int step = 0; step < 200; ++step) {
      if (random() % 2 == 0 && !taken.empty()) {
        const auto victim = std::next(taken.begin(), long(random() % taken.size()));
        const int stream = int(random() % 3);
        for (std::uint64_t i = 0; i < victim->second; ++i) state[victim->first + i] = stream;
        fresh.give(origin + victim->first * 512, victim->second * 512, by[std::size_t(stream)]);
        taken.erase(victim);
        continue;
      }
      const std::uint64_t wanted = 1 + random() % 5;
      const std::uint64_t stream = 1 + random() % 2;
      std::uint64_t best = kUnits, best_length = kUnits + 1;
      for (std::uint64_t at = 0; at < kUnits;) {
        std::uint64_t end = at;
        while (end < kUnits && (state[end] == 0 || state[end] == int(stream))) ++end;
        if (end - at >= wanted && end - at < best_length) {
          best = at;
          best_length = end - at;
        }
        at = end + 1;
      }
      const auto got = fresh.take(wanted * 512, [&](const FreedBy& piece) { return piece.stream == stream; });
      ASSERT_EQ(got.has_value(), best != kUnits) << "round " << round << ", step " << step;
      if (!got) continue;
      ASSERT_EQ(got->base, origin + best * 512) << "round " << round << ", step " << step;
      for (std::uint64_t i = 0; i < wanted; ++i) state[best + i] = -1;
      taken.emplace(best, wanted);
    }
    for (const auto& [unit, length] : taken) fresh.give(origin + unit * 512, length * 512, by[1]);
    fresh.give(origin + kUnits * 512, PoolSpace::kStep - kUnits * 512, nullptr);
    fresh.settle([](const FreedBy&) { return true; });
    fresh.trim(0, [](const PoolSpace::Segment&) {});
    ASSERT_EQ(fresh.held(), 0u) << "round " << round << ": free neighbours have become one piece";
  }
}

}  // namespace
}  // namespace cudasim
