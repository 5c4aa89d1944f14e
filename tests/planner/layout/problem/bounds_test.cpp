#include "planner/layout/problem/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/layout/problem/validation.h"
#include "tests/planner/layout/brute_force.h"

namespace memopt::layout {
namespace {

TEST(Bounds, AreNeverAboveTheSmallestHeight) {
  std::mt19937_64 random(3);
  int above_load = 0;
  for (int round = 0; round < 1500; ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 5});
    const std::uint64_t bound = lower_bound_of(problem, Sections(problem));
    ASSERT_LE(bound, brute_force::smallest_height(problem)) << brute_force::text(problem);
    ASSERT_GE(bound, load_bound(problem));
    above_load += bound > load_bound(problem);
  }
  EXPECT_GT(above_load, 0);
}

}  // namespace
}  // namespace memopt::layout
