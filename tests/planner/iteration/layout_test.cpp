// The solvers against the independent validator, and both against exhaustive search.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "planner/iteration/layout/fit.h"
#include "planner/iteration/layout/offset_lines.h"
#include "planner/iteration/layout/portfolio.h"
#include "planner/iteration/layout/validation.h"

namespace memopt::planner::layout {
namespace {

Problem random_problem(std::mt19937_64& random, std::size_t buffers, std::uint64_t operations) {
  Problem problem;
  problem.operations = operations;
  for (std::size_t i = 0; i < buffers; ++i) {
    const std::uint64_t begin = random() % operations;
    const std::uint64_t length = random() % 20 == 0 ? random() % (2 * operations) : random() % (operations / 3 + 1);
    problem.buffers.push_back({(1 + random() % 50) * kAlignment, begin, begin + length});
  }
  return problem;
}

// Every operation at which the buffer is needed, one by one.
std::vector<bool> needed(const Buffer& buffer, std::uint64_t operations) {
  std::vector<bool> result(operations, false);
  for (std::uint64_t t = buffer.begin; t <= buffer.end; ++t) result[t % operations] = true;
  return result;
}

bool holds(const Problem& problem, const std::vector<std::uint64_t>& offsets) {
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const auto a = needed(problem.buffers[i], problem.operations);
    for (std::size_t j = 0; j < i; ++j) {
      if (offsets[i] + problem.buffers[i].bytes <= offsets[j] || offsets[j] + problem.buffers[j].bytes <= offsets[i]) {
        continue;
      }
      const auto b = needed(problem.buffers[j], problem.operations);
      for (std::uint64_t t = 0; t < problem.operations; ++t) {
        if (a[t] && b[t]) return false;
      }
    }
  }
  return true;
}

std::uint64_t load(const Problem& problem) {
  std::uint64_t peak = 0;
  for (std::uint64_t t = 0; t < problem.operations; ++t) {
    std::uint64_t sum = 0;
    for (const Buffer& buffer : problem.buffers) sum += needed(buffer, problem.operations)[t] ? buffer.bytes : 0;
    peak = std::max(peak, sum);
  }
  return peak;
}

std::vector<Solution> all_solutions(const Problem& problem) {
  std::vector<Solution> solutions;
  for (const Order order : {Order::kSize, Order::kLifetime, Order::kArea}) {
    for (const Gap gap : {Gap::kBest, Gap::kFirst}) {
      solutions.push_back(place_in_gaps(problem, ordered(problem, order), gap));
    }
  }
  for (const LineKey key : {LineKey::kLifetime, LineKey::kSize, LineKey::kArea}) {
    solutions.push_back(place_on_lines(problem, key, ~std::uint64_t{0}));
  }
  solutions.push_back(solve(problem).solution);
  return solutions;
}

TEST(Layout, EverySolverGivesValidSolutions) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = random_problem(random, random() % 30, 1 + random() % 40);
    EXPECT_EQ(lower_bound(problem), load(problem));
    for (const Solution& solution : all_solutions(problem)) {
      ASSERT_EQ(find_fault(problem, solution), std::nullopt);
      ASSERT_TRUE(holds(problem, solution.offsets));
      ASSERT_GE(solution.bytes, lower_bound(problem));
    }
  }
}

TEST(Layout, TheValidatorAgreesWithLookingAtEveryPair) {
  std::mt19937_64 random(2);
  int wrong = 0;
  for (int round = 0; round < 2000; ++round) {
    const Problem problem = random_problem(random, 2 + random() % 6, 2 + random() % 12);
    Solution solution;
    for (const Buffer& buffer : problem.buffers) {
      solution.offsets.push_back(random() % 120 * kAlignment);
      solution.bytes = std::max(solution.bytes, solution.offsets.back() + buffer.bytes);
    }
    const bool valid = holds(problem, solution.offsets);
    wrong += !valid;
    ASSERT_EQ(!find_fault(problem, solution).has_value(), valid);
  }
  EXPECT_GT(wrong, 200);
  EXPECT_LT(wrong, 1800);
}

TEST(Layout, TheValidatorNamesWhatIsWrong) {
  Problem problem{10, {{512, 0, 5}, {512, 5, 12}}};
  EXPECT_EQ(find_fault(problem, {{0, 512}, 1024}), std::nullopt);
  EXPECT_NE(find_fault(problem, {{0, 0}, 512}), std::nullopt);     // both at operation 5
  EXPECT_NE(find_fault(problem, {{0, 512}, 2048}), std::nullopt);  // not what is taken
  EXPECT_NE(find_fault(problem, {{0, 100}, 612}), std::nullopt);   // not aligned
  EXPECT_NE(find_fault(problem, {{0}, 512}), std::nullopt);        // too few
  EXPECT_NE(find_fault(problem, {{0, ~std::uint64_t{511}}, 0}), std::nullopt);
  problem.buffers[1] = {512, 6, 10};  // and again at 0
  EXPECT_NE(find_fault(problem, {{0, 0}, 512}), std::nullopt);
  problem.buffers[1] = {512, 6, 9};
  EXPECT_EQ(find_fault(problem, {{0, 0}, 512}), std::nullopt);
}

// The best of all orders by first fit is the optimum: some optimal solution has every buffer pushed down.
std::uint64_t optimum(const Problem& problem) {
  std::vector<std::uint32_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t best = ~std::uint64_t{0};
  do {
    best = std::min(best, place_in_gaps(problem, order, Gap::kFirst).bytes);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Layout, TinyProblemsAgainstExhaustiveSearch) {
  std::mt19937_64 random(3);
  int optimal = 0;
  for (int round = 0; round < 60; ++round) {
    const Problem problem = random_problem(random, 1 + random() % 6, 2 + random() % 8);
    const std::uint64_t best = optimum(problem);
    const Outcome outcome = solve(problem);
    ASSERT_LE(outcome.lower_bound, best);
    ASSERT_GE(outcome.solution.bytes, best);
    ASSERT_LE(outcome.solution.bytes, best + best / 2);
    optimal += outcome.solution.bytes == best;
  }
  EXPECT_GT(optimal, 50);
}

TEST(Layout, BestFitUsesTheHoleBelowTheLowestNeighbour) {
  // Placed: 4 units for long at 0; then 3 units beside; the small one fits below what is left free at 0.
  const Problem problem{10, {{4 * kAlignment, 0, 3}, {3 * kAlignment, 2, 9}, {2 * kAlignment, 5, 9}}};
  const Solution solution = place_in_gaps(problem, ordered(problem, Order::kSize), Gap::kBest);
  EXPECT_EQ(solution.offsets, (std::vector<std::uint64_t>{0, 4 * kAlignment, 0}));
}

TEST(Layout, SizesBeyond32Bits) {
  const std::uint64_t large = std::uint64_t{1} << 39;
  const Problem problem{4, {{large, 0, 1}, {large, 1, 2}, {large, 2, 3}}};
  const Outcome outcome = solve(problem);
  EXPECT_EQ(find_fault(problem, outcome.solution), std::nullopt);
  EXPECT_EQ(outcome.solution.bytes, 2 * large);
}

TEST(Layout, TwentyThousandBuffers) {
  std::mt19937_64 random(4);
  Problem problem;
  problem.operations = 60000;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t begin = random() % problem.operations;
    problem.buffers.push_back({(1 + random() % 5000) * kAlignment, begin, begin + 1 + random() % 2000});
  }
  Heuristics heuristics;
  heuristics.other_orders = false;
  const Outcome outcome = solve(problem, heuristics);
  EXPECT_EQ(find_fault(problem, outcome.solution), std::nullopt);
  EXPECT_LT(outcome.solution.bytes, outcome.lower_bound / 10 * 13);
}

TEST(Layout, NothingToPlace) {
  const Outcome outcome = solve({5, {}});
  EXPECT_EQ(outcome.solution.bytes, 0u);
  EXPECT_EQ(find_fault({5, {}}, outcome.solution), std::nullopt);
}

TEST(Layout, ExhaustedBudgetStillGivesASolution) {
  std::mt19937_64 random(6);
  const Problem problem = random_problem(random, 500, 1000);
  Heuristics heuristics;
  heuristics.budget = 1;
  EXPECT_EQ(find_fault(problem, solve(problem, heuristics).solution), std::nullopt);
  heuristics.smart_pool = heuristics.other_orders = false;
  EXPECT_EQ(find_fault(problem, solve(problem, heuristics).solution), std::nullopt);
}

}  // namespace
}  // namespace memopt::planner::layout
