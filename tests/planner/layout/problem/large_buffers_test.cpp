#include "planner/layout/problem/large_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"
#include "planner/layout/published/smart_pool.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

// Few large ones among many small ones, in one or two intervals; some have their place.
Problem mixed(std::mt19937_64& random, std::size_t buffers, bool fixed) {
  Problem problem;
  std::uint64_t above = 0;
  for (std::size_t i = 0; i < buffers; ++i) {
    const std::uint64_t bytes = random() % 5 == 0 ? 1000 + random() % 9000 : 1 + random() % 20;
    const std::uint64_t begin = random() % 900, end = begin + 1 + random() % 90;
    std::vector<Interval> when = {{begin, end}};
    if (random() % 3 == 0) when.push_back({end + 2, end + 3 + random() % 50});
    const bool has_place = fixed && random() % 50 == 0;
    problem.add(bytes, when, 1, has_place ? above : kAnywhere);
    if (has_place) above += bytes;
  }
  return problem;
}

// Of those that are not among the large ones, by going through all times.
std::uint64_t load_of_the_others(const Problem& problem, const std::vector<std::uint32_t>& large) {
  std::uint64_t most = 0;
  for (std::uint64_t time = 0; time < 1100; ++time) {
    std::uint64_t load = 0;
    for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
      if (std::binary_search(large.begin(), large.end(), i)) continue;
      for (const Interval& one : problem.intervals_of(std::size_t{i}))
        load += one.begin <= time && time < one.end ? problem.buffers[i].bytes : 0;
    }
    most = std::max(most, load);
  }
  return most;
}

TEST(LargeBuffers, AreTheFewestThatLeaveLittle) {
  std::mt19937_64 random(5);
  int found = 0;
  for (int round = 0; round < rounds(40); ++round) {
    const Problem problem = mixed(random, 60 + random() % 200, round % 2 == 0);
    const Sections sections(problem);
    const auto large = large_buffers(problem, sections, 0.05);
    if (!large) continue;
    ++found;
    const double most = 0.05 * static_cast<double>(sections.peak);
    EXPECT_LE(static_cast<double>(load_of_the_others(problem, large->numbers)), most);
    EXPECT_LE(large->numbers.size(), problem.buffers.size() / 2);
    ASSERT_EQ(large->numbers.size(), large->problem.buffers.size());
    std::vector<std::uint32_t> fewer;
    std::uint64_t smallest = ~std::uint64_t{0};
    for (std::size_t k = 0; k < large->numbers.size(); ++k) {
      const Buffer& buffer = problem.buffers[large->numbers[k]];
      EXPECT_EQ(large->problem.buffers[k].bytes, buffer.bytes);
      EXPECT_EQ(large->problem.buffers[k].fixed, buffer.fixed);
      EXPECT_TRUE(std::ranges::equal(large->problem.intervals_of(k), problem.intervals_of(buffer)));
      if (buffer.fixed == kAnywhere) smallest = std::min(smallest, buffer.bytes);
    }
    // Without those of the least size among them that is too much.
    for (const std::uint32_t i : large->numbers)
      if (problem.buffers[i].fixed != kAnywhere || problem.buffers[i].bytes > smallest) fewer.push_back(i);
    EXPECT_TRUE(fewer.size() == large->numbers.size() ||
                static_cast<double>(load_of_the_others(problem, fewer)) > most);
    for (std::uint32_t i = 0; i < problem.buffers.size(); ++i)
      EXPECT_TRUE(problem.buffers[i].fixed == kAnywhere ||
                  std::binary_search(large->numbers.begin(), large->numbers.end(), i));
  }
  EXPECT_GT(found, rounds(40) / 2);
}

TEST(LargeBuffers, AreNoneWhereAllAreOfOneSize) {
  Problem problem;
  for (std::uint64_t i = 0; i < 100; ++i) problem.add(10, Interval{i, i + 50});
  EXPECT_FALSE(large_buffers(problem, Sections(problem), 0.05));
  EXPECT_FALSE(large_buffers(Problem{}, Sections(Problem{}), 0.05));
}

// Large ones that come and go several times among small ones that come once.
Problem swapped(std::mt19937_64& random, std::size_t buffers) {
  Problem problem;
  for (std::size_t i = 0; i < buffers; ++i) {
    std::vector<Interval> when;
    const bool large = random() % 4 == 0;
    for (std::uint64_t at = random() % 400; at < 900 && when.size() < (large ? 4 : 1);) {
      const std::uint64_t end = at + 1 + random() % (large ? 120 : 40);
      when.push_back({at, end});
      at = end + 20 + random() % 150;
    }
    problem.add(large ? 1000 * (1 + random() % 30) : 1 + random() % 300, when, large ? 1000 : 1);
  }
  return problem;
}

// What is solved that way is a layout of all, and in some of these problems the lowest so far.
TEST(LargeBuffers, TheSmallOnesFindRoomBesideThem) {
  std::mt19937_64 random(6);
  int lowest = 0;
  for (int round = 0; round < 2; ++round) {
    const Problem problem = swapped(random, 700);
    const Outcome outcome = solve_by_heuristics(problem, {.work = 1'000'000}, [&](const Outcome& better) {
      EXPECT_EQ(validate(problem, better.solution), std::nullopt) << better.solver;
      lowest += better.solver == "large-first" ? 1 : 0;
    });
    ASSERT_TRUE(outcome.found(problem.buffers.size()));
  }
  EXPECT_GT(lowest, 0);
}

// With many buffers SmartPool comes later: what these have must leave it the room that solve.h promises.
TEST(LargeBuffers, LeaveTheWorkThatThePublishedHeuristicsNeed) {
  std::mt19937_64 random(7);
  const std::uint64_t n = 2500;
  const Problem problem = mixed(random, n, false);
  ASSERT_TRUE(large_buffers(problem, Sections(problem), 0.05));
  const Outcome outcome = solve_by_heuristics(problem, {.work = n * (200 + n / 256)});
  EXPECT_LE(outcome.solution.height, smart_pool_best_fit(problem, {}).solution.height);
  EXPECT_LE(outcome.solution.height, smart_pool_first_fit(problem, {}).solution.height);
}

}  // namespace
}  // namespace memopt::layout
