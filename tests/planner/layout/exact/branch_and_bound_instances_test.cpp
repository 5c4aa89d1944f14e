// MiniMalloc's challenging instances, with counted work: the result is the same on any machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "planner/layout/exact/branch_and_bound.h"
#include "planner/layout/files/csv.h"
#include "planner/layout/problem/validation.h"

namespace memopt::layout {
namespace {

Problem load(const std::string& name) {
  input::File file(std::string(std::getenv("MEMOPT_LAYOUT_INSTANCES")) + "/minimalloc/" + name);
  return read_csv(file).problem;
}

class Challenging : public testing::TestWithParam<char> {};

TEST_P(Challenging, FitsIntoTheCapacity) {
  const Problem problem = load(std::string(1, GetParam()) + ".1048576.csv");
  constexpr std::uint64_t kCapacity = 1048576;
  const Outcome outcome = place_within(problem, kCapacity, {.work = 10'000'000});
  ASSERT_TRUE(outcome.found(problem.buffers.size()));
  EXPECT_LE(outcome.solution.height, kCapacity);
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(MiniMalloc, Challenging, testing::Range('A', 'L'),
                         [](const auto& it) { return std::string(1, it.param); });

TEST(Least, OneIsAtItsBound) {
  const Problem problem = load("C.1048576.csv");
  const Outcome outcome = minimize_height(problem, {.work = 1'000'000});
  EXPECT_EQ(outcome.solution.height, 1039360U);
  EXPECT_TRUE(outcome.optimal);
}

}  // namespace
}  // namespace memopt::layout
