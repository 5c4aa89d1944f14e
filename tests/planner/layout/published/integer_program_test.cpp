#include "planner/layout/published/integer_program.h"

#include <gtest/gtest.h>

#include "planner/layout/problem/validation.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

TEST(IntegerProgram, AgreesWithBruteForce) {
  std::mt19937_64 random(31);
  for (int round = 0; round < rounds(150); ++round) {
    const Problem problem = brute_force::random_problem(random);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    const Outcome outcome = integer_program(problem, {});
    const std::string text = brute_force::text(problem);
    ASSERT_TRUE(outcome.found(problem.buffers.size())) << text;
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << text;
    ASSERT_EQ(outcome.solution.height, smallest) << text;
    ASSERT_TRUE(outcome.optimal) << text;
    ASSERT_EQ(outcome.lower_bound, smallest) << text;
  }
}

TEST(IntegerProgram, KeepsToTheCapacity) {
  std::mt19937_64 random(32);
  for (int round = 0; round < rounds(100); ++round) {
    Problem problem = brute_force::random_problem(random);
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    problem.capacity = smallest - 1 + random() % 3;
    const Outcome outcome = integer_program(problem, {});
    const std::string text = brute_force::text(problem);
    ASSERT_EQ(outcome.found(problem.buffers.size()), *problem.capacity >= smallest) << text;
    ASSERT_EQ(outcome.infeasible, *problem.capacity < smallest) << text;
  }
}

TEST(IntegerProgram, DoesNotSupportTooManyConflicts) {
  Problem problem;
  for (std::uint64_t i = 0; i < 1000; ++i) problem.add(1, {i, i + 10});
  EXPECT_EQ(integer_program_unsupported(problem), std::nullopt);
  for (std::uint64_t i = 0; i < 200; ++i) problem.add(1, {0, 1000});
  EXPECT_NE(integer_program_unsupported(problem), std::nullopt);
}

}  // namespace
}  // namespace memopt::layout
