#include "planner/layout/local_search/step_function.h"

#include <gtest/gtest.h>

#include <random>

namespace memopt::layout {
namespace {

TEST(StepFunction, IsTheSameAsOneValueForEachSection) {
  std::mt19937_64 random(1);
  for (const std::uint32_t sections : {1U, 2U, 63U, 64U, 65U, 128U, 300U}) {
    StepFunction<int> function(sections);
    function.reset(7);
    std::vector<int> plain(sections, 7);
    for (int round = 0; round < 3000; ++round) {
      const auto lo = static_cast<std::uint32_t>(random() % sections);
      const auto hi = static_cast<std::uint32_t>(lo + 1 + random() % (sections - lo));
      const auto begin = plain.begin() + lo;
      const auto end = plain.begin() + hi;
      ASSERT_EQ(function.most(lo, hi), *std::max_element(begin, end)) << lo << " " << hi;
      ASSERT_EQ(function.least(lo, hi), *std::min_element(begin, end)) << lo << " " << hi;
      if (round % 100 == 99) {
        function.reset(round);
        std::fill(plain.begin(), plain.end(), round);
        continue;
      }
      const int value = static_cast<int>(random() % 20);
      function.set(lo, hi, value);
      std::fill(begin, end, value);
    }
  }
}

}  // namespace
}  // namespace memopt::layout
