#include "planner/layout/problem/large_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"
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

// What is solved that way is a layout of all, and close to the bound.
TEST(LargeBuffers, TheSmallOnesFindRoomBesideThem) {
  std::mt19937_64 random(6);
  for (int round = 0; round < rounds(4); ++round) {
    const Problem problem = mixed(random, 900, round % 2 == 0);
    const Outcome outcome = solve_by_heuristics(problem, {.work = 400'000});
    ASSERT_TRUE(outcome.found(problem.buffers.size()));
    EXPECT_EQ(validate(problem, outcome.solution), std::nullopt);
    EXPECT_LE(static_cast<double>(outcome.solution.height), 1.05 * static_cast<double>(bound_of(problem)));
  }
}

}  // namespace
}  // namespace memopt::layout
