// Rules that hold for every solver in the table, on problems with all extensions.
#include "planner/layout/portfolio/solvers.h"

#include <gtest/gtest.h>

#include "planner/layout/problem/validation.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

using brute_force::random_problem;

std::string name_of(const testing::TestParamInfo<Solver>& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Solvers : public testing::TestWithParam<Solver> {
 protected:
  // StepFunction instead of time: the same on every machine.
  static Outcome run(const Problem& problem, unsigned threads = 1, std::uint64_t work = 100'000) {
    return GetParam().run(problem, {.work = work, .threads = threads, .seed = 7});
  }
  static bool supports(const Problem& problem) { return !GetParam().unsupported || !GetParam().unsupported(problem); }
};

TEST_P(Solvers, AgreesWithBruteForce) {
  std::mt19937_64 random(11);
  int optimal = 0;
  for (int round = 0; round < rounds(1500); ++round) {
    const Problem problem = random_problem(random, {.buffers = 7});
    ASSERT_TRUE(supports(problem));
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    const Outcome outcome = run(problem);
    const std::string text = brute_force::text(problem) + "smallest height " + std::to_string(smallest);
    ASSERT_TRUE(outcome.found(problem.buffers.size())) << text;
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << text;
    ASSERT_GE(outcome.solution.height, smallest) << text;
    ASSERT_LE(outcome.lower_bound, smallest) << text;
    ASSERT_GE(outcome.lower_bound, load_bound(problem)) << text;
    ASSERT_FALSE(outcome.infeasible) << text;
    if (outcome.optimal || GetParam().exact) {
      ASSERT_EQ(outcome.solution.height, smallest) << text;
    }
    if (GetParam().exact) {
      ASSERT_TRUE(outcome.optimal) << text;
    }
    if (outcome.optimal) {
      ASSERT_EQ(outcome.lower_bound, outcome.solution.height) << text;
    }
    optimal += outcome.optimal ? 1 : 0;
  }
  EXPECT_GT(optimal, 0);
}

TEST_P(Solvers, KeepsToTheCapacity) {
  std::mt19937_64 random(12);
  for (int round = 0; round < rounds(1000); ++round) {
    Problem problem = random_problem(random, {.buffers = 7});
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    problem.capacity = smallest - 1 + random() % 4;
    const Outcome outcome = run(problem);
    const std::string text = brute_force::text(problem) + "smallest height " + std::to_string(smallest);
    const bool found = outcome.found(problem.buffers.size());
    if (found) {
      ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << text;
    }
    if (outcome.infeasible) {
      ASSERT_LT(*problem.capacity, smallest) << text;
    }
    if (GetParam().exact) {
      ASSERT_EQ(outcome.infeasible, *problem.capacity < smallest) << text;
    }
    if (GetParam().exact) {
      ASSERT_EQ(found, *problem.capacity >= smallest) << text;
    }
  }
}

TEST_P(Solvers, PlacesManyBuffersWithEveryExtension) {
  std::mt19937_64 random(13);
  for (int round = 0; round < (kSanitized ? 6 : 30); ++round) {
    const Problem problem = random_problem(random, {.buffers = 400, .bytes = 1000, .times = 300});
    const Outcome outcome = run(problem, 1, 20'000);
    const bool found = outcome.found(problem.buffers.size());
    ASSERT_TRUE(found || GetParam().exact) << brute_force::text(problem);
    if (!found) continue;
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt) << brute_force::text(problem);
    ASSERT_LE(outcome.lower_bound, outcome.solution.height);
  }
}

TEST_P(Solvers, GivesTheSameForTheSameSeed) {
  std::mt19937_64 random(14);
  for (int round = 0; round < (kSanitized ? 5 : 20); ++round) {
    const Problem problem = random_problem(random, {.buffers = 60, .bytes = 100, .times = 40});
    const Outcome once = run(problem, 1, 20'000);
    const Outcome again = run(problem, 1, 20'000);
    const Outcome by_many = run(problem, 3, 20'000);
    EXPECT_EQ(once.solution.offsets, again.solution.offsets) << brute_force::text(problem);
    EXPECT_EQ(once.solution.offsets, by_many.solution.offsets) << brute_force::text(problem);
    EXPECT_EQ(once.lower_bound, by_many.lower_bound) << brute_force::text(problem);
  }
}

TEST_P(Solvers, TakesLargeNumbers) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 57;
  Problem problem;
  problem.add(kLarge, {0, 2});
  problem.add(kLarge - 1, {1, (std::uint64_t{1} << 63) - 1}, kLarge / 8);
  problem.add(3, {1, 3}, 1, kLarge);
  ASSERT_TRUE(supports(problem));
  const Outcome outcome = run(problem);
  ASSERT_TRUE(outcome.found(3));
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
}

TEST_P(Solvers, TakesNothing) {
  const Outcome outcome = run({});
  EXPECT_TRUE(outcome.found(0));
  EXPECT_EQ(outcome.solution.height, 0U);
  EXPECT_TRUE(outcome.optimal);
}

INSTANTIATE_TEST_SUITE_P(Table, Solvers, testing::ValuesIn(solvers().begin(), solvers().end()), name_of);

}  // namespace
}  // namespace memopt::layout
