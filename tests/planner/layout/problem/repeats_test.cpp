#include "planner/layout/problem/repeats.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/layout/problem/validation.h"
#include "planner/layout/published/smart_pool.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/epochs.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

std::optional<Repeat> repeat_of(const Problem& problem) { return find_repeat(problem, Sections(problem)); }

// A step of some buffers at random, of which some are needed in the next one, too.
Problem random_epoch(std::mt19937_64& random, std::size_t buffers, std::uint64_t steps) {
  Epoch epoch;
  epoch.length = 4 * buffers;
  for (std::size_t i = 0; i < buffers; ++i) {
    const std::uint64_t begin = random() % epoch.length;
    const std::uint64_t length = 1 + random() % (random() % 10 == 0 ? epoch.length + 9 : 40);
    epoch.step.push_back({1 + random() % 100, begin, begin + length, random() % 4 == 0 ? 1 + random() % 4 : 1});
  }
  for (int i = 0; i < 5; ++i) epoch.throughout.push_back(1 + random() % 50);
  return problem_of(epoch, steps);
}

TEST(FindRepeat, FindsTheStepsOfAnEpoch) {
  std::mt19937_64 random(1);
  for (int round = 0; round < rounds(60); ++round) {
    const std::size_t buffers = 30 + random() % 60;
    const std::uint64_t steps = 8 + random() % 10;
    const Problem problem = random_epoch(random, buffers, steps);
    const auto repeat = repeat_of(problem);
    ASSERT_TRUE(repeat) << buffers << " buffers, " << steps << " steps";
    EXPECT_EQ(repeat->buffers % buffers, 0u);
    EXPECT_GE(repeat->run.size(), problem.buffers.size() / 2);
    const Sections sections(problem);
    for (std::size_t i = repeat->buffers; i < repeat->run.size(); ++i) {
      const std::uint32_t now = repeat->run[i], before = repeat->run[i - repeat->buffers];
      ASSERT_EQ(problem.buffers[now].bytes, problem.buffers[before].bytes);
      const SectionRange its = sections.of(problem.buffers[now]).front();
      const SectionRange last = sections.of(problem.buffers[before]).front();
      ASSERT_EQ(its.length(), last.length());
      ASSERT_EQ(its.lo, last.lo + repeat->sections);
    }
  }
}

TEST(FindRepeat, WhatDoesNotRepeatHasNone) {
  std::mt19937_64 random(2);
  for (int round = 0; round < rounds(40); ++round) {
    EXPECT_FALSE(repeat_of(brute_force::random_problem(random, {.buffers = 600, .bytes = 1000, .times = 2000})));
  }
  EXPECT_FALSE(repeat_of(Problem{}));
  EXPECT_FALSE(repeat_of(random_epoch(random, 150, 2)));  // twice is not enough
}

// What is valid for one repetition whose end is followed by its beginning is so for all together.
TEST(FindRepeat, PlacesOfOneAreThoseOfAll) {
  std::mt19937_64 random(3);
  for (int round = 0; round < rounds(60); ++round) {
    const Problem problem = random_epoch(random, 30 + random() % 60, 9);
    const Sections sections(problem);
    const auto repeat = find_repeat(problem, sections);
    ASSERT_TRUE(repeat);
    const Repetition one = one_of(problem, sections, *repeat);
    ASSERT_EQ(find_fault(one.problem), std::nullopt);
    const Outcome outcome = smart_pool_best_fit(one.problem, {});
    std::vector<std::uint64_t> places = places_in_all(problem, *repeat, one, outcome.solution.offsets);
    Problem placed;
    Solution solution;
    solution.height = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] == kAnywhere) continue;
      placed.add(problem.buffers[i].bytes, problem.intervals_of(i), problem.buffers[i].alignment);
      solution.offsets.push_back(places[i]);
      solution.height = std::max(solution.height, places[i] + problem.buffers[i].bytes);
    }
    EXPECT_EQ(validate(placed, solution), std::nullopt);
    EXPECT_GE(placed.buffers.size(), problem.buffers.size() / 2);
    EXPECT_LE(solution.height, outcome.solution.height);
    // The others: of their size, at a place of theirs.
    const std::vector<std::uint64_t> before = places;
    guess_others(problem, sections, *repeat, one, outcome.solution.offsets, places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (before[i] != kAnywhere) {
        EXPECT_EQ(places[i], before[i]);
      } else if (places[i] != kAnywhere) {
        EXPECT_LE(places[i] + problem.buffers[i].bytes, outcome.solution.height);
        EXPECT_EQ(places[i] % problem.buffers[i].alignment, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace memopt::layout
