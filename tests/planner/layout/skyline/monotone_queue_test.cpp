#include "planner/layout/skyline/monotone_queue.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace memopt::layout {
namespace {

// Held against an ordered set, in which nothing void is left: as a skyline uses it, the lowest is taken out and others
// that are not below it come in, of which some are void before they are the lowest.
TEST(MonotoneQueue, TheLowestAndOfThoseTheEarliestComesFirst) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    MonotoneQueue queue;
    std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> model;  // height, begin, segment
    std::vector<std::uint32_t> version;
    const auto push = [&](std::uint64_t height) {
      const auto segment = static_cast<std::uint32_t>(version.size());
      const auto lo = static_cast<std::uint32_t>(random() % 5 * 100'000 + segment);  // all begin at different times
      version.push_back(7);
      queue.push({height, lo, segment, 7});
      model.emplace(height, lo, segment);
    };
    queue.clear();
    push(0);
    int equal = 0;
    for (int k = 0; k < 500 && !model.empty(); ++k) {
      const auto [height, lo, segment] = *model.begin();
      const auto& front =
          queue.front([&](const MonotoneQueue::Entry& one) { return version[one.segment] == one.version; });
      ASSERT_EQ(front.height, height) << seed << ' ' << k;
      ASSERT_EQ(front.segment, segment) << seed << ' ' << k;
      ++version[segment];
      model.erase(model.begin());
      for (std::uint64_t more = random() % 4; more != 0; --more) {
        // Of all magnitudes, and often the same.
        const std::uint64_t above = random() % 3 == 0 ? 0 : random() >> (random() % 40 + 24);
        equal += above == 0;
        push(height + above);
      }
      // Another one is void.
      if (model.size() > 2 && random() % 2 == 0) {
        const auto last = std::prev(model.end());
        ++version[std::get<2>(*last)];
        model.erase(last);
      }
      if (model.empty()) push(height);
    }
    EXPECT_GT(equal, 10);
  }
}

}  // namespace
}  // namespace memopt::layout
