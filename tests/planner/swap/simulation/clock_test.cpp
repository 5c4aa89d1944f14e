// Points between the begins and ends of operations.
#include "planner/swap/simulation/clock.h"

#include <gtest/gtest.h>

namespace memopt::swap {
namespace {

TEST(Clock, TellsOperationsOfNoLengthApart) {
  Problem problem;
  for (const double time : {0.0, 10.0, 10.0, 10.0, 20.0})
    problem.operations.push_back({Kind::kNothing, kNoBlock, time});
  problem.period = 30;
  Clock clock(problem);
  EXPECT_EQ(clock.not_before(10), point_of(1));
  EXPECT_EQ(clock.not_after(10), point_of(3));
  EXPECT_EQ(clock.not_before(5), point_of(0) + (1U << (kPointBits - 1)));
  EXPECT_EQ(clock.not_after(15), point_of(3) + (1U << (kPointBits - 1)));
  EXPECT_EQ(clock.not_before(30), point_of(5));
  EXPECT_EQ(clock.not_after(45), point_of(8) + (1U << (kPointBits - 1)));
  EXPECT_EQ(clock.last_ended(10, 0, 5), 2U);
  const Delay delay{4, 7};
  clock.delay({&delay, 1});
  EXPECT_EQ(clock.period(), 37);
  EXPECT_EQ(clock.begin(4), 27);
  EXPECT_EQ(clock.end(3), 20);
  // Between two operations: the first is over, the second has not begun.
  EXPECT_EQ(clock.not_before(23), point_of(4));
  EXPECT_EQ(clock.not_after(23), point_of(4));
}

}  // namespace
}  // namespace memopt::swap
