// Solutions are valid with all extensions, each is lower than the last, and the last is as low as exhaustive search
// finds.
#include "planner/layout/local_search/ejection_search.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/layout/problem/bounds.h"
#include "planner/layout/problem/validation.h"
#include "tests/planner/layout/brute_force.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::layout {
namespace {

constexpr EjectionRules kRules[] = {{},
                                    {.by_area = true},
                                    {.largest_first = true, .gap_fraction = 0.1, .patience = 30},
                                    {.by_area = true, .largest_first = true, .gap_fraction = 1}};

// From the stacked solution. Each one found must be valid and lower than the last.
Solution search(const Problem& problem, const EjectionRules& rules, std::uint64_t goal, std::uint64_t work,
                std::uint64_t seed = 1) {
  const Sections sections(problem);
  const auto search = EjectionSearch::make(problem, sections, rules, seed);
  const Deadline deadline({});
  Allowance allowance(deadline, work);
  Solution best = stacked(problem);
  search->improve(Solution(best), goal, allowance, [&](const Solution& found) {
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
  // The search is incomplete and may cycle, but hardly ever with so few buffers.
  EXPECT_LE(missed, rounds(30));
}

TEST(EjectionSearch, HoldsWithEveryExtension) {
  std::mt19937_64 random(2);
  int lower = 0;
  for (int round = 0; round < rounds(200); ++round) {
    const Problem problem = brute_force::random_problem(random, {.buffers = 80, .bytes = 40, .times = 50});
    const std::uint64_t bound = lower_bound_of(problem, Sections(problem));
    const std::uint64_t before = stacked(problem).height;
    const Solution found = search(problem, kRules[round % std::size(kRules)], bound, 3000);
    ASSERT_GE(found.height, bound);
    lower += found.height < before;
  }
  EXPECT_GT(lower, rounds(150));
}

// In units that fit 32 bits, and in larger ones.
TEST(EjectionSearch, DoesTheSameWithLargeSizes) {
  std::mt19937_64 random(3);
  constexpr EjectionRules kToTheGoal{.by_area = true, .gap_fraction = 1, .patience = 1'000'000};
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

// The result depends on the number of steps, not on how they are divided among calls.
TEST(EjectionSearch, ResumesWhereItEnded) {
  std::mt19937_64 random(4);
  int found_later = 0;
  for (int round = 0; round < rounds(60); ++round) {
    const Problem problem =
        brute_force::random_problem(random, {.buffers = 60, .bytes = 60, .times = 40, .fixed = false});
    const Sections sections(problem);
    const std::uint64_t bound = lower_bound_of(problem, sections);
    const Deadline deadline({});
    const auto go = [&](std::uint64_t calls, std::uint64_t work) {
      const auto search = EjectionSearch::make(problem, sections, kRules[1], static_cast<std::uint64_t>(round));
      Solution best = stacked(problem);
      for (std::uint64_t call = 0; call < calls; ++call) {
        Allowance allowance(deadline, work);
        const std::uint64_t before = best.height;
        search->improve(Solution(best), bound, allowance, [&](const Solution& found) { best = found; });
        found_later += call > 0 && best.height < before;
      }
      return best;
    };
    // A call's last step may exceed its allowance, so that many calls take some steps more.
    const Solution by_parts = go(40, 100);
    ASSERT_LE(by_parts.height, go(1, 4000).height) << brute_force::text(problem);
    ASSERT_GE(by_parts.height, go(1, 8000).height) << brute_force::text(problem);
  }
  EXPECT_GT(found_later, 0);
}

}  // namespace
}  // namespace memopt::layout
