#include "planner/layout/skyline/priorities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

namespace memopt::layout {
namespace {

// By comparing, as the header has it. Few buffers and many are ranked in different ways.
TEST(Rank, IsByKeyThenByBeginThenByTheOrderOfTheProblem) {
  std::mt19937_64 random(5);
  for (const std::size_t count : {1, 2, 300, 1999, 2000, 5000}) {
    for (const bool ordered : {false, true}) {
      Problem problem;
      std::vector<double> keys;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t begin = random() % (count / 3 + 1) * 4;
        problem.add(1 + random() % 9, Interval{begin, begin + 1 + random() % 9});
        // Of both signs and all magnitudes, many of them equal; a zero of either sign is a zero.
        const double magnitude = random() % 2 == 0 ? static_cast<double>(random() % 3) : std::exp2(random() % 60);
        keys.push_back(random() % 3 == 0 ? -magnitude : magnitude);
      }
      std::vector<std::uint32_t> place(count);
      std::iota(place.begin(), place.end(), 0);
      if (ordered) {
        std::shuffle(place.begin(), place.end(), random);
        problem.start_order.resize(count);
        for (std::uint32_t i = 0; i < count; ++i) problem.start_order[place[i]] = i;
      }
      const Sections sections(problem);
      std::vector<std::uint32_t> expected(count), priorities;
      std::iota(expected.begin(), expected.end(), 0);
      std::sort(expected.begin(), expected.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (keys[a] != keys[b]) return keys[a] < keys[b];
        return std::tuple(sections.arcs[b].lo, place[b]) < std::tuple(sections.arcs[a].lo, place[a]);
      });
      rank(problem, sections, keys, priorities);
      ASSERT_EQ(priorities.size(), count);
      for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(priorities[expected[i]], i + 1) << count << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace memopt::layout
