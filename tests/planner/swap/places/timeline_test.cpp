#include "planner/swap/places/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "planner/swap/places/layout_problem.h"
#include "planner/swap/search/search.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"
#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

layout::Limits counted() { return {.work = 20000}; }

std::optional<std::string> fault_of(const Problem& problem, const Decisions& decisions) {
  return verify(problem, decisions, {.no_early = true}).fault;
}

// Block 0 lives until operation 3 of the next iteration, block 1 from 4 to 7: never more than 200 bytes at once.
testing::Plan slightly_longer_than_a_period() {
  testing::Plan plan;
  plan.problem.blocks = {{.id = 0, .bytes = 100}, {.id = 1, .bytes = 100}};
  using enum Kind;
  plan.problem.operations = {{kMalloc, 0, 0},  {kWrite, 0, 10}, {kRead, 0, 20, 1}, {kFree, 0, 30, 1},
                             {kMalloc, 1, 40}, {kWrite, 1, 50}, {kRead, 1, 60},    {kFree, 1, 70}};
  plan.problem.period = 100;
  plan.problem.machine = {10, 10, 0, 0};
  plan.problem.chunk = 1;
  plan.decisions.places = {{{0, 100}, false}, {{200}, false}};
  return plan;
}

TEST(Timeline, OthersLieOnAPlaceBetweenItsTurns) {
  const testing::Plan plan = slightly_longer_than_a_period();
  const Liveness liveness = find_liveness(plan.problem);
  ASSERT_EQ(liveness.peak, 200u);
  const auto placed = lay_out_in_time(plan.problem, liveness, plan.decisions, counted());
  ASSERT_TRUE(placed);
  EXPECT_EQ(footprint_of(plan.problem, *placed), 200u);
  EXPECT_EQ(fault_of(plan.problem, *placed), std::nullopt);
}

// Block 0 is away while block 1 is there; by load it returns into whatever is free.
TEST(Timeline, APlanByLoadIsLaidOutSoThatItTakesNoLonger) {
  testing::Plan plan;
  plan.problem.blocks = {{.id = 0, .bytes = 100}, {.id = 1, .bytes = 100}, {.id = 2, .bytes = 40}};
  using enum Kind;
  plan.problem.operations = {
      {kMalloc, 0, 0},  {kWrite, 0, 0},  {kNothing, kNoBlock, 10}, {kMalloc, 1, 30}, {kWrite, 1, 30}, {kFree, 1, 40},
      {kMalloc, 2, 40}, {kWrite, 2, 40}, {kFree, 2, 60},           {kRead, 0, 70},   {kFree, 0, 80}};
  plan.problem.period = 90;
  plan.problem.machine = {10, 10, 0, 0};
  plan.problem.chunk = 1;
  plan.problem.limit = 140;
  plan.decisions.swaps = {{.block = 0, .out_after = 1, .in_after = 5, .need = 9}};
  const Liveness liveness = find_liveness(plan.problem);
  const auto placed = lay_out_as_by_load(plan.problem, liveness, plan.decisions, 140, counted(), 140);
  ASSERT_TRUE(placed);
  const Report report = verify(plan.problem, *placed);
  EXPECT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.footprint, 140u);
  EXPECT_EQ(report.timing.added_ns, 0);
  // Without a capacity, the lowest; there is none below what is there at once.
  const auto lowest = lay_out_as_by_load(plan.problem, liveness, plan.decisions, 140, counted());
  ASSERT_TRUE(lowest);
  EXPECT_EQ(footprint_of(plan.problem, *lowest), 140u);
  EXPECT_FALSE(lay_out_as_by_load(plan.problem, liveness, plan.decisions, 140, counted(), 139));
  // By load it can't be simulated in less than it needs.
  EXPECT_FALSE(lay_out_as_by_load(plan.problem, liveness, plan.decisions, 99, counted()));
}

SearchPlan searched(const Problem& problem, bool in_step) {
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = 200;
  limits.in_step = in_step;
  return search(problem, find_liveness(problem), Objective::kTime, limits);
}

TEST(Timeline, ASearchHasNoThirdPlaceForThemButWhereTurnsAreNotIterations) {
  Problem problem = slightly_longer_than_a_period().problem;
  for (Block& block : problem.blocks) block.pinned = true;
  problem.limit = 200;
  const SearchPlan in_step = searched(problem, true);
  EXPECT_TRUE(in_step.feasible);
  EXPECT_EQ(in_step.footprint, 200u);
  EXPECT_EQ(fault_of(problem, in_step.decisions), std::nullopt);
  const SearchPlan apart = searched(problem, false);
  EXPECT_FALSE(apart.feasible);
  EXPECT_EQ(apart.footprint, 300u);
}

// Two blocks side by side, of which one is away while the other lives.
testing::Plan side_by_side() {
  testing::Plan plan = testing::one_place();
  plan.decisions.places = testing::two_blocks().decisions.places;
  return plan;
}

TEST(Timeline, WhatIsAwayLeavesItsPlaceToAnotherWhenItsCopyHasEnded) {
  testing::Plan plan = side_by_side();
  const Liveness liveness = find_liveness(plan.problem);
  const auto places = [&] {
    const auto placed = lay_out_in_time(plan.problem, liveness, plan.decisions, counted());
    EXPECT_TRUE(placed);
    EXPECT_EQ(verify(plan.problem, *placed, {.no_early = true}).timing.added_ns, 0);
    return footprint_of(plan.problem, *placed);
  };
  EXPECT_EQ(places(), 100u);
  plan.problem.machine.out_bytes_per_ns = 4;  // until 45 ns, and block 1 comes at 30
  EXPECT_EQ(places(), 200u);
}

TEST(Timeline, NothingIsFoundWithinACapacityThatIsTooSmall) {
  const testing::Plan plan = slightly_longer_than_a_period();
  const Liveness liveness = find_liveness(plan.problem);
  EXPECT_FALSE(lay_out_in_time(plan.problem, liveness, plan.decisions, counted(), 199));
  testing::Plan overlapping = plan;
  overlapping.decisions.places[1].offsets = {50};
  EXPECT_FALSE(lay_out_in_time(plan.problem, liveness, overlapping.decisions, counted()));
}

// All places one above the other.
void stack(const Problem& problem, Decisions& decisions) {
  std::uint64_t top = 0;
  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    for (std::uint64_t& offset : decisions.places[b].offsets) {
      offset = top;
      top += (problem.blocks[b].bytes + problem.chunk - 1) / problem.chunk * problem.chunk;
    }
  }
}

// Any plan that a search comes to, laid out anew: it holds, takes no longer, and is about as low as it was.
TEST(Timeline, AnyPlanHoldsAndTakesNoLonger) {
  testing::TinyProblems problems(11);
  int laid_out = 0, lower = 0;
  const int wanted = testing::problems_wanted(150);
  for (int i = 0; i < wanted; ++i) {
    Problem problem = problems.next(true, 60);
    const Liveness liveness = find_liveness(problem);
    problem.limit = liveness.peak * static_cast<std::uint64_t>(50 + i % 50) / 100;
    SearchLimits limits;
    limits.time = std::chrono::nanoseconds::max();
    limits.attempts = 100;
    limits.seed = static_cast<std::uint64_t>(i);
    const SearchPlan plan = search(problem, liveness, Objective::kTime, limits);
    problem.limit.reset();
    Decisions stacked = plan.decisions;
    stack(problem, stacked);
    const Timing timing = Simulator(problem, liveness).evaluate(stacked);
    if (timing.fault != Fault::kNone || timing.early_swap_ins > 0) continue;
    const auto placed = lay_out_in_time(problem, liveness, stacked, counted());
    ASSERT_TRUE(placed) << "problem " << i;
    ++laid_out;
    ASSERT_EQ(fault_of(problem, *placed), std::nullopt) << "problem " << i;
    ASSERT_LE(verify(problem, *placed, {}).timing.added_ns, timing.added_ns + 0.01) << "problem " << i;
    ASSERT_LE(footprint_of(problem, *placed), footprint_of(problem, stacked)) << "problem " << i;
    lower += footprint_of(problem, *placed) < footprint_of(problem, stacked) ? 1 : 0;
  }
  EXPECT_GT(laid_out, wanted / 2);
  EXPECT_GT(lower, wanted / 4);
}

}  // namespace
}  // namespace memopt::swap
