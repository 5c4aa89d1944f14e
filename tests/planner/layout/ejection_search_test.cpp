// Taking out and putting back: what is found holds and is lower each time, whatever the extensions, and is as low as
// trying everything finds.
#include "planner/layout/ejection_search.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/layout/bounds.h"
#include "planner/layout/stacked.h"
#include "planner/layout/validation.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

constexpr EjectionRules kRules[] = {{},
                                    {.by_area = true},
                                    {.largest_first = true, .ambition = 0.1, .patience = 30},
                                    {.by_area = true, .largest_first = true, .ambition = 1}};

// From the worst there is. Each one found must hold and be lower than the last.
Solution search(const Problem& problem, const EjectionRules& rules, std::uint64_t goal, std::uint64_t work,
                std::uint64_t seed = 1) {
  const Timeline timeline(problem);
  const auto search = EjectionSearch::make(problem, timeline, rules, seed);
  const Watch watch({});
  Allowance allowance(watch, work);
  Solution best = stacked(problem);
  search->turn(Solution(best), goal, allowance, [&](const Solution& found) {
    ASSERT_LT(found.height, best.height) << brute_force::text(problem);
    const auto fault = validate(problem, found);
    ASSERT_EQ(fault, std::nullopt) << *fault << "\n" << brute_force::text(problem);
    best = found;
  });
  return best;
}

TEST(EjectionSearch, FindsTheLeastHeight) {
  std::mt19937_64 random(1);
  int missed = 0;
  for (int round = 0; round < rounds(3000); ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 7, .bytes = 5, .times = 8});
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    const Solution found = search(problem, kRules[round % std::size(kRules)], smallest, 2000);
    ASSERT_GE(found.height, smallest);
    missed += found.height > smallest;
  }
  // It is no proof, and may go in a circle: but hardly ever with so few.
  EXPECT_LE(missed, rounds(30));
}

TEST(EjectionSearch, HoldsWithEveryExtension) {
  std::mt19937_64 random(2);
  int lower = 0;
  for (int round = 0; round < rounds(200); ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 80, .bytes = 40, .times = 50});
    const std::uint64_t bound = lower_bound_of(problem, Timeline(problem));
    const std::uint64_t before = stacked(problem).height;
    const Solution found = search(problem, kRules[round % std::size(kRules)], bound, 3000);
    ASSERT_GE(found.height, bound);
    lower += found.height < before;
  }
  EXPECT_GT(lower, rounds(150));
}

// In units that 32 bits take, and in ones that they do not.
TEST(EjectionSearch, DoesTheSameWithLargeSizes) {
  std::mt19937_64 random(3);
  constexpr EjectionRules kToTheGoal{.by_area = true, .ambition = 1, .patience = 1'000'000};
  for (int round = 0; round < rounds(500); ++round) {
    Problem problem;
    problem.add(1, Interval{1000, 1001});  // alone in its time: with it the divisor of all sizes is 1
    const Problem part = brute_force::random_problem(random, {.buffers = 7, .bytes = 5, .times = 8});
    for (std::size_t i = 0; i < part.buffers.size(); ++i) {
      problem.add(part.buffers[i].bytes, part.intervals_of(i), part.buffers[i].alignment, part.buffers[i].fixed);
    }
    const std::uint64_t smallest = brute_force::smallest_height(problem);
    const Solution small = search(problem, kToTheGoal, smallest, 500);
    constexpr std::uint64_t kScale = (std::uint64_t{1} << 40) + 7;
    for (Buffer& buffer : problem.buffers) {
      if (&buffer == &problem.buffers.front()) continue;
      buffer.bytes *= kScale;
      if (buffer.alignment != 1) buffer.alignment *= kScale;
      if (buffer.fixed != kAnywhere) buffer.fixed *= kScale;
    }
    const Solution large = search(problem, kToTheGoal, smallest * kScale, 500);
    ASSERT_EQ(small.height == smallest, large.height == smallest * kScale) << brute_force::text(problem);
  }
}

// What is found depends on how many steps there were, not on how they were cut into turns.
TEST(EjectionSearch, GoesOnWhereItEnded) {
  std::mt19937_64 random(4);
  int found_later = 0;
  for (int round = 0; round < rounds(60); ++round) {
    const Problem problem =
        brute_force::random_problem(random, {.buffers = 60, .bytes = 60, .times = 40, .fixed = false});
    const Timeline timeline(problem);
    const std::uint64_t bound = lower_bound_of(problem, timeline);
    const Watch watch({});
    const auto go = [&](std::uint64_t turns, std::uint64_t work) {
      const auto search = EjectionSearch::make(problem, timeline, kRules[1], static_cast<std::uint64_t>(round));
      Solution best = stacked(problem);
      for (std::uint64_t turn = 0; turn < turns; ++turn) {
        Allowance allowance(watch, work);
        const std::uint64_t before = best.height;
        search->turn(Solution(best), bound, allowance, [&](const Solution& found) { best = found; });
        found_later += turn > 0 && best.height < before;
      }
      return best;
    };
    // A turn's last step may go beyond what it was allowed, so that many turns are some steps more.
    const Solution by_parts = go(40, 100);
    ASSERT_LE(by_parts.height, go(1, 4000).height) << brute_force::text(problem);
    ASSERT_GE(by_parts.height, go(1, 8000).height) << brute_force::text(problem);
  }
  EXPECT_GT(found_later, 0);
}

}  // namespace
}  // namespace memopt::layout
