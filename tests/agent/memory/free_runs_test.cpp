// Free runs by place and size, against a list of which units are free.
#include "agent/memory/free_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kUnit = 8;

// Of each byte: is it free?
struct Model {
  std::vector<bool> free;

  std::size_t longest() const {
    std::size_t longest = 0;
    for (std::size_t i = 0, run = 0; i < free.size(); ++i) {
      run = free[i] ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    return longest;
  }
  std::size_t whole_units() const {
    std::size_t count = 0;
    for (std::size_t unit = 0; unit + kUnit <= free.size(); unit += kUnit) {
      bool whole = true;
      for (std::size_t i = unit; i < unit + kUnit; ++i) whole = whole && free[i];
      count += whole ? 1 : 0;
    }
    return count;
  }
  std::size_t count() const {
    std::size_t runs = 0;
    for (std::size_t i = 0; i < free.size(); ++i) runs += free[i] && (i == 0 || !free[i - 1]) ? 1 : 0;
    return runs;
  }
};

TEST(FreeRuns, KnowWhatIsFree) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    Model model{std::vector<bool>(200, false)};
    FreeRuns runs;
    runs.set_unit(kUnit);
    runs.make_room(model.free.size());
    for (int step = 0; step < 300; ++step) {
      std::size_t begin = random() % model.free.size();
      const bool was_free = model.free[begin];
      std::size_t end = begin + 1;
      while (end < model.free.size() && model.free[end] == was_free && random() % 8 != 0) ++end;
      if (was_free) {
        runs.remove(begin, end);
      } else {
        runs.add(begin, end);
      }
      for (std::size_t i = begin; i < end; ++i) model.free[i] = !was_free;
      ASSERT_EQ(runs.count(), model.count());
      ASSERT_EQ(runs.whole_units(), model.whole_units());
      ASSERT_EQ(runs.bytes(), static_cast<std::uint64_t>(std::count(model.free.begin(), model.free.end(), true)));

      const std::uint64_t bytes = 1 + random() % 20;
      const std::uint64_t alignment = random() % 2 == 0 ? 1 : kUnit;
      std::uint64_t at = 0;
      const bool found = runs.find(bytes, alignment, &at);
      if (alignment == 1) {
        ASSERT_EQ(found, model.longest() >= bytes);
      }
      if (found) {
        ASSERT_EQ(at % alignment, 0u);
        for (std::uint64_t i = at; i < at + bytes; ++i) ASSERT_TRUE(model.free[i]);
      } else {
        ASSERT_LT(model.longest(), bytes + alignment - 1);
      }
      // Beside what lies in its units already, if anywhere.
      std::size_t units = model.whole_units();
      if (runs.find_beside(bytes, 1, &at)) {
        for (std::uint64_t i = at; i < at + bytes; ++i) {
          ASSERT_TRUE(model.free[i]);
          model.free[i] = false;
        }
        ASSERT_EQ(model.whole_units(), units);
        std::fill_n(model.free.begin() + static_cast<std::ptrdiff_t>(at), bytes, true);
      }
      if (runs.find_in_largest(bytes, &at)) {
        ASSERT_EQ(at % kUnit, 0u);
        for (std::uint64_t i = at; i < at + bytes; ++i) ASSERT_TRUE(model.free[i]);
      } else {
        ASSERT_LT(model.longest(), std::max(bytes + kUnit - 1, 2 * kUnit - 1));
      }
      bool starts = model.free[begin] && (begin == 0 || !model.free[begin - 1]);
      ASSERT_EQ(runs.begins_at(begin, 1), starts);
      for (std::size_t i = begin; i < begin + bytes; ++i) starts = starts && i < model.free.size() && model.free[i];
      ASSERT_EQ(runs.begins_at(begin, bytes), starts);
      std::size_t last = model.free.size();
      while (last > 0 && model.free[last - 1]) --last;
      ASSERT_EQ(runs.begin_of_last(model.free.size()), last);
    }
  }
}

TEST(FreeRuns, TheSmallestThatIsLargeEnoughIsFound) {
  FreeRuns runs;
  runs.make_room(4);
  runs.add(0, 50);
  runs.add(100, 120);
  runs.add(200, 220);
  runs.add(300, 330);
  std::uint64_t at = 0;
  EXPECT_TRUE(runs.find(15, 1, &at));
  EXPECT_EQ(at, 100u);
  EXPECT_TRUE(runs.find(25, 1, &at));
  EXPECT_EQ(at, 300u);
  EXPECT_TRUE(runs.find(20, 64, &at));
  EXPECT_EQ(at, 0u);
  EXPECT_FALSE(runs.find(51, 1, &at));
  std::vector<std::uint64_t> sizes;
  runs.for_each_by_size([&](std::uint64_t begin, std::uint64_t end) {
    sizes.push_back(end - begin);
    return sizes.size() < 2;
  });
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{50, 30}));
}

// What follows one another lies side by side, not one in each run.
TEST(FreeRuns, FewUnitsAreBroken) {
  FreeRuns runs;
  runs.set_unit(kUnit);
  runs.make_room(16);
  runs.add(0, 16);
  runs.add(24, 56);
  runs.add(64, 80);
  std::uint64_t at = 0;
  for (const std::uint64_t expected : {0u, 64u, 24u, 36u}) {
    ASSERT_TRUE(runs.find(12, 1, &at));
    EXPECT_EQ(at, expected);
    runs.remove(at, at + 12);
    if (expected != 0) continue;
    EXPECT_TRUE(runs.find_beside(3, 1, &at));
    EXPECT_EQ(at, 12u);
    EXPECT_FALSE(runs.find_beside(5, 1, &at));
  }
}

}  // namespace
}  // namespace memopt::agent
