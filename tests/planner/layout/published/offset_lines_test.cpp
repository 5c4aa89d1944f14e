#include "planner/layout/published/offset_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace memopt::layout {
namespace {

TEST(OffsetLines, AreThePapers) {
  // The longest first; the lowest line; lifted where nothing fits.
  Problem problem;
  problem.add(2, Interval{0, 4});
  problem.add(1, Interval{0, 10});
  problem.add(3, Interval{4, 10});
  problem.add(5, Interval{2, 6});
  const Outcome outcome = offset_lines(problem, {});
  EXPECT_EQ(outcome.solution.offsets, (std::vector<std::uint64_t>{1, 0, 1, 4}));
  EXPECT_EQ(outcome.solution.height, 9);
}

}  // namespace
}  // namespace memopt::layout
