#include "planner/layout/local_search/kept_places.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/planner/layout/brute_force.h"

namespace memopt::layout {
namespace {

// No two that are kept conflict, and they come in order; what is not kept conflicted with another, or was not aligned.
TEST(KeptPlaces, KeepsAllThatDoNotConflict) {
  std::mt19937_64 random(1);
  int dropped = 0;
  for (int round = 0; round < 5000; ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 12, .times = 12});
    const std::size_t count = problem.buffers.size();
    std::vector<std::uint64_t> previous(count);
    for (std::uint64_t& offset : previous) offset = random() % 8 == 0 ? kAnywhere : random() % 30;
    const KeptPlaces kept = kept_places(problem, Sections(problem), previous);
    ASSERT_EQ(kept.offsets.size(), count);
    std::vector<std::uint64_t> had(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Buffer& buffer = problem.buffers[i];
      had[i] = buffer.fixed != kAnywhere ? buffer.fixed : previous[i];
      if (had[i] != kAnywhere && buffer.fixed == kAnywhere && had[i] % buffer.alignment != 0) had[i] = kAnywhere;
      ASSERT_TRUE(kept.offsets[i] == had[i] || (kept.offsets[i] == kAnywhere && buffer.fixed == kAnywhere));
    }
    std::size_t placed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bool conflicted = false;
      for (std::size_t j = 0; j < count; ++j) {
        if (i == j || had[i] == kAnywhere || had[j] == kAnywhere) continue;
        const bool conflict = brute_force::conflict(problem, i, had[i], j, had[j]);
        conflicted |= conflict;
        ASSERT_FALSE(conflict && kept.offsets[i] != kAnywhere && kept.offsets[j] != kAnywhere)
            << brute_force::text(problem);
      }
      if (had[i] != kAnywhere && !conflicted) {
        ASSERT_EQ(kept.offsets[i], had[i]) << brute_force::text(problem);
      }
      placed += kept.offsets[i] != kAnywhere;
      dropped += had[i] != kAnywhere && kept.offsets[i] == kAnywhere;
    }
    ASSERT_EQ(kept.ascending.size(), placed);
    for (std::size_t i = 0; i < placed; ++i) {
      ASSERT_NE(kept.offsets[kept.ascending[i]], kAnywhere);
      if (i > 0) {
        ASSERT_LE(kept.offsets[kept.ascending[i - 1]], kept.offsets[kept.ascending[i]]);
      }
    }
  }
  EXPECT_GT(dropped, 0);
}

TEST(KeptPlaces, DropsTheOneThatGrew) {
  Problem problem;
  problem.add(12, {0, 4});
  problem.add(10, {1, 3});
  const std::uint64_t previous[] = {0, 10};
  EXPECT_EQ(kept_places(problem, Sections(problem), previous).offsets, (std::vector<std::uint64_t>{kAnywhere, 10}));
}

}  // namespace
}  // namespace memopt::layout
