#include "planner/layout/exact/branch_and_bound.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "planner/layout/problem/validation.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

using brute_force::random_problem;
using brute_force::smallest_height;

// Each bit switches a rule off.
constexpr unsigned kRules = 5;
Pruning without(unsigned bits) {
  Pruning pruning;
  pruning.canonical_only = (bits & 1) == 0;
  pruning.section_inference = (bits & 2) == 0;
  pruning.check_dominance = (bits & 4) == 0;
  pruning.dynamic_decomposition = (bits & 8) == 0;
  pruning.nogoods = (bits & 16) == 0;
  return pruning;
}

// The answer of place_within must be that of exhaustive search.
void check(const Problem& problem, std::uint64_t smallest, std::uint64_t capacity, const Outcome& outcome) {
  ASSERT_EQ(outcome.found(problem.buffers.size()), smallest <= capacity) << brute_force::text(problem);
  ASSERT_EQ(outcome.infeasible, smallest > capacity) << brute_force::text(problem);
  ASSERT_LE(outcome.lower_bound, smallest) << brute_force::text(problem);
  if (outcome.infeasible) {
    ASSERT_GT(outcome.lower_bound, capacity) << brute_force::text(problem);
  }
  if (outcome.optimal) {
    ASSERT_EQ(outcome.solution.height, smallest) << brute_force::text(problem);
  }
  if (smallest > capacity) return;
  ASSERT_LE(outcome.solution.height, capacity) << brute_force::text(problem);
  const auto fault = validate(problem, outcome.solution);
  ASSERT_EQ(fault, std::nullopt) << *fault << "\n" << brute_force::text(problem);
  ASSERT_TRUE(brute_force::holds(problem, outcome.solution)) << brute_force::text(problem);
}

TEST(BranchAndBound, AgreesWithExhaustiveSearch) {
  std::mt19937_64 random(1);
  int beyond_the_load = 0;
  for (int round = 0; round < rounds(6000); ++round) {
    const brute_force::Kind kind{.buffers = 7, .bytes = 1 + random() % 6, .times = 3 + random() % 6};
    const Problem problem = random_problem(random, kind);
    const std::uint64_t smallest = smallest_height(problem);
    const std::uint64_t load = load_bound(problem);
    beyond_the_load += smallest > load;
    for (std::uint64_t capacity = load; capacity <= smallest + 1; ++capacity) {
      ASSERT_NO_FATAL_FAILURE(check(problem, smallest, capacity, place_within(problem, capacity, {.seed = random()})));
    }
  }
  EXPECT_GT(beyond_the_load, rounds(300));  // otherwise no proof would have been tested
}

TEST(BranchAndBound, NoSetOfRulesChangesTheAnswer) {
  std::mt19937_64 random(2);
  int beyond_the_load = 0;
  for (int round = 0; round < rounds(1500); ++round) {
    const Problem problem = random_problem(random, {.buffers = 6, .bytes = 5, .times = 7});
    const std::uint64_t smallest = smallest_height(problem);
    beyond_the_load += smallest > load_bound(problem);
    for (unsigned bits = 0; bits < 1U << kRules; ++bits) {
      SCOPED_TRACE(bits);
      ASSERT_NO_FATAL_FAILURE(check(problem, smallest, smallest, place_within(problem, smallest, {}, without(bits))));
      const std::uint64_t below = smallest - 1;
      ASSERT_NO_FATAL_FAILURE(check(problem, smallest, below, place_within(problem, below, {}, without(bits))));
    }
  }
  EXPECT_GT(beyond_the_load, rounds(60));
}

// Bytes that share a large divisor, beside ones that do not fit 32 bits in any unit.
TEST(BranchAndBound, TakesLargeSizes) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    Problem problem = random_problem(random, {.buffers = 6, .bytes = 5, .times = 7, .fixed = round % 2 == 0});
    const std::uint64_t smallest = smallest_height(problem);
    constexpr std::uint64_t kScale = (std::uint64_t{1} << 40) + 7;
    for (Buffer& buffer : problem.buffers) {
      buffer.bytes *= kScale;
      if (buffer.alignment != 1) buffer.alignment *= kScale;
      if (buffer.fixed != kAnywhere) buffer.fixed *= kScale;
    }
    problem.add(1, Interval{1000, 1001});  // alone in its time: the divisor of all is 1
    ASSERT_TRUE(place_within(problem, smallest * kScale, {}).found(problem.buffers.size()))
        << brute_force::text(problem);
    ASSERT_TRUE(place_within(problem, smallest * kScale - 1, {}).infeasible) << brute_force::text(problem);
  }
}

// A dense problem: many buffers that fill a rectangle of time and space exactly, by cutting it up.
Problem cut_up(std::mt19937_64& random, std::uint64_t times, std::uint64_t bytes, int cuts) {
  struct Rectangle {
    std::uint64_t begin, end, low, high;
  };
  std::vector<Rectangle> rectangles{{0, times, 0, bytes}};
  for (int cut = 0; cut < cuts; ++cut) {
    Rectangle& old = rectangles[random() % rectangles.size()];
    Rectangle made = old;
    if (random() % 2 == 0 && old.end - old.begin > 1) {
      made.begin = old.end = old.begin + 1 + random() % (old.end - old.begin - 1);
    } else if (old.high - old.low > 1) {
      made.low = old.high = old.low + 1 + random() % (old.high - old.low - 1);
    } else {
      continue;
    }
    rectangles.push_back(made);
  }
  Problem problem;
  for (const Rectangle& r : rectangles) problem.add(r.high - r.low, Interval{r.begin, r.end});
  return problem;
}

TEST(BranchAndBound, FillsARectangleWithoutAGap) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = cut_up(random, 40, 60, 30);
    ASSERT_EQ(load_bound(problem), 60U);
    const Outcome outcome = place_within(problem, 60, {.work = 2'000'000});
    ASSERT_TRUE(outcome.found(problem.buffers.size())) << brute_force::text(problem);
    ASSERT_TRUE(outcome.optimal);
    ASSERT_EQ(validate(problem, outcome.solution), std::nullopt);
    ASSERT_TRUE(place_within(problem, 59, {}).infeasible);
  }
}

TEST(BranchAndBound, TheNumberOfThreadsChangesNothing) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 40; ++round) {
    const Problem problem = cut_up(random, 60, 300, 60);
    const std::uint64_t capacity = 300 + random() % 20;
    const Limits limits{.work = 60'000, .seed = random()};
    const Outcome alone = place_within(problem, capacity, limits);
    for (const unsigned threads : {2U, 3U, 8U}) {
      Limits more = limits;
      more.threads = threads;
      const Outcome together = place_within(problem, capacity, more);
      ASSERT_EQ(together.solution.offsets, alone.solution.offsets);
      ASSERT_EQ(together.infeasible, alone.infeasible);
      ASSERT_EQ(together.lower_bound, alone.lower_bound);
    }
  }
}

TEST(BranchAndBound, FindsTheLeastHeight) {
  std::mt19937_64 random(7);
  int beyond_the_load = 0;
  for (int round = 0; round < rounds(1500); ++round) {
    Problem problem = random_problem(random, {.buffers = 7, .bytes = 6, .times = 7});
    const std::uint64_t smallest = smallest_height(problem);
    beyond_the_load += smallest > load_bound(problem);
    std::uint64_t last = ~std::uint64_t{0};
    const Outcome outcome = minimize_height(problem, {}, [&](const Outcome& better) {
      ASSERT_LT(better.solution.height, last);
      ASSERT_EQ(validate(problem, better.solution), std::nullopt);
      last = better.solution.height;
    });
    ASSERT_TRUE(outcome.optimal) << brute_force::text(problem);
    ASSERT_EQ(outcome.solution.height, smallest) << brute_force::text(problem);
    ASSERT_EQ(outcome.lower_bound, smallest) << brute_force::text(problem);
    ASSERT_EQ(last, smallest);
    problem.capacity = smallest;
    ASSERT_EQ(minimize_height(problem, {}).solution.height, smallest) << brute_force::text(problem);
    problem.capacity = smallest - 1;
    const Outcome none = minimize_height(problem, {});
    ASSERT_TRUE(none.infeasible) << brute_force::text(problem);
    ASSERT_FALSE(none.found(problem.buffers.size()));
  }
  EXPECT_GT(beyond_the_load, rounds(60));
}

// Too hard to be decided: one unit more than what the cut-up rectangle leaves.
Problem too_hard() {
  std::mt19937_64 random(6);
  Problem problem = cut_up(random, 400, 5000, 350);
  problem.capacity.reset();
  return problem;
}

TEST(BranchAndBound, EndsWithItsWork) {
  const Problem problem = too_hard();
  const Outcome outcome = place_within(problem, 5000, {.work = 5000});
  EXPECT_FALSE(outcome.infeasible);
  EXPECT_EQ(outcome.lower_bound, 5000U);
  for (const std::uint64_t work : {1, 1000, 60'000}) {
    const Outcome least = minimize_height(problem, {.work = work});
    EXPECT_FALSE(least.infeasible);
    if (least.found(problem.buffers.size())) {
      EXPECT_EQ(validate(problem, least.solution), std::nullopt);
    }
    Limits more{.work = work, .threads = 3};
    EXPECT_EQ(minimize_height(problem, more).solution.offsets, least.solution.offsets);
  }
}

TEST(BranchAndBound, EndsWhenCancelled) {
  const Problem problem = too_hard();
  std::atomic<bool> cancelled{true};
  EXPECT_FALSE(place_within(problem, 5000, {.cancelled = &cancelled}).found(problem.buffers.size()));
  cancelled = false;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancelled = true;
  });
  const Outcome outcome = place_within(problem, 5000, {.cancelled = &cancelled, .threads = 2});
  canceller.join();
  EXPECT_FALSE(outcome.infeasible);
}

TEST(BranchAndBound, EndsInTime) {
  const Problem problem = too_hard();
  const Outcome outcome = place_within(problem, 5000, {.time = std::chrono::milliseconds(20), .threads = 2});
  EXPECT_FALSE(outcome.infeasible);
  EXPECT_FALSE(place_within(problem, 5000, {.time = std::chrono::nanoseconds(0)}).found(problem.buffers.size()));
}

TEST(BranchAndBound, TakesNothingAndOnlyFixedBuffers) {
  EXPECT_TRUE(place_within({}, 0, {}).found(0));
  Problem problem;
  problem.add(4, Interval{0, 3}, 1, 6);
  problem.add(2, Interval{1, 2}, 1, 0);
  const Outcome outcome = place_within(problem, 10, {});
  EXPECT_EQ(outcome.solution.offsets, (std::vector<std::uint64_t>{6, 0}));
  EXPECT_EQ(outcome.solution.height, 10U);
  EXPECT_TRUE(place_within(problem, 9, {}).infeasible);
}

// Depth is not limited by the stack.
TEST(BranchAndBound, TakesManyBuffers) {
  Problem problem;
  for (std::uint64_t i = 0; i < 6000; ++i) problem.add(1 + i % 7, Interval{i, i + 1 + i % 50});
  const std::uint64_t bound = load_bound(problem);
  const Outcome outcome = place_within(problem, bound + bound / 4, {.work = 4'000'000});
  ASSERT_TRUE(outcome.found(problem.buffers.size()));
  EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
}

}  // namespace
}  // namespace memopt::layout
