#include "planner/swap/places/returns.h"

#include <gtest/gtest.h>

#include <string>

#include "planner/swap/places/layout_problem.h"
#include "planner/swap/places/timeline.h"
#include "planner/swap/search/search.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/swap/busy_problem.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"
#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

std::vector<std::uint32_t> grouped(const std::vector<bool>& free, std::vector<std::int32_t> in_swaps) {
  std::vector<std::uint32_t> groups;
  const std::uint32_t count = group_stays(free, in_swaps, groups);
  groups.push_back(count);
  return groups;
}

using Groups = std::vector<std::uint32_t>;

TEST(Returns, StaysLieTogetherUpToAReturnThatIsFree) {
  EXPECT_EQ(grouped({}, {}), Groups({1}));
  EXPECT_EQ(grouped({true}, {-1}), Groups({0, 1}));
  EXPECT_EQ(grouped({true, false, true}, {-1, 0, 1, 2}), Groups({0, 1, 1, 2, 3}));
  // A persistent block's: round and round.
  EXPECT_EQ(grouped({true}, {0}), Groups({0, 1}));
  EXPECT_EQ(grouped({true, true}, {0, 1}), Groups({0, 1, 2}));
  EXPECT_EQ(grouped({false, true}, {0, 1}), Groups({0, 0, 1}));
  EXPECT_EQ(grouped({true, false}, {0, 1}), Groups({0, 0, 1}));
  EXPECT_EQ(grouped({false, true, true}, {0, 1, 2}), Groups({0, 1, 0, 2}));
}

// Out from 20 to 30, in from 70 to 80; a chunk mapped there and back.
TEST(Returns, AreFreeWhereNothingWaitsForTheHost) {
  testing::Plan plan = testing::returns_elsewhere(20);
  EXPECT_EQ(find_free_returns(plan.problem, find_liveness(plan.problem), plan.decisions), std::vector<bool>{true});
  plan.problem.machine.remap_ns = 21;
  EXPECT_EQ(find_free_returns(plan.problem, find_liveness(plan.problem), plan.decisions), std::vector<bool>{false});
  plan.problem.machine.remap_ns.reset();
  EXPECT_EQ(find_free_returns(plan.problem, find_liveness(plan.problem), plan.decisions), std::vector<bool>{false});
  plan.problem.machine.remap_ns = 0;
  plan.problem.layout = false;
  plan.problem.limit = 200;
  EXPECT_EQ(find_free_returns(plan.problem, find_liveness(plan.problem), plan.decisions), std::vector<bool>{false});
}

// Two instances would be there at once, and each would need the address.
TEST(Returns, NotOfWhatLivesForAnIteration) {
  testing::Plan plan = testing::returns_elsewhere(1);
  // Allocated where it is freed in the iteration behind.
  auto& operations = plan.problem.operations;
  operations[9] = {Kind::kNothing, kNoBlock, 90};
  operations[2] = {Kind::kFree, 0, 20, 1};
  operations[8] = {Kind::kNothing, kNoBlock, 80};
  operations[7] = {Kind::kNothing, kNoBlock, 70};
  plan.decisions.swaps[0] = {.block = 0, .out_after = 1, .in_after = 8, .need = 11, .returns_to = {100}};
  operations[2].age = 1;
  EXPECT_EQ(find_free_returns(plan.problem, find_liveness(plan.problem), plan.decisions), std::vector<bool>{false});
  const auto fault = verify(plan.problem, plan.decisions).fault;
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->find("swaps[0]: offset: expected none, as block 0 lives for an iteration or longer"),
            std::string::npos)
      << *fault;
}

TEST(Returns, TheHostHasTimeForOneOfTwo) {
  testing::Plan plan = testing::two_blocks();
  plan.problem.machine.remap_ns = 7.5;  // there and back
  plan.problem.chunk = 100;
  const Liveness liveness = find_liveness(plan.problem);
  plan.decisions.swaps = {{.block = 0, .out_after = 0, .in_after = 4, .need = 5},
                          {.block = 1, .out_after = 0, .in_after = 4, .need = 5}};
  const std::vector<Absence> both = {{0, 20, 40}, {1, 22, 41}};
  EXPECT_EQ(find_free_returns(plan.problem, liveness, plan.decisions, both, 100), std::vector<bool>({true, false}));
  const std::vector<Absence> later = {{0, 20, 40}, {1, 22, 50}};
  EXPECT_EQ(find_free_returns(plan.problem, liveness, plan.decisions, later, 100), std::vector<bool>({true, true}));
  // The same point of another iteration.
  const std::vector<Absence> shifted = {{0, 220, 240}, {1, 22, 41}};
  EXPECT_EQ(find_free_returns(plan.problem, liveness, plan.decisions, shifted, 100), std::vector<bool>({true, false}));
  // Each time later than the time before.
  EXPECT_EQ(find_free_returns(plan.problem, liveness, plan.decisions, {{0, -90, 60}}, 100),
            std::vector<bool>({true, false}));
  plan.problem.machine.remap_ns = 60;
  EXPECT_EQ(find_free_returns(plan.problem, liveness, plan.decisions, {{0, -90, 60}}, 100),
            std::vector<bool>({false, false}));
  plan.problem.machine.remap_ns = 7.5;
  // What it is busy with at the end of an iteration is in the way in the next.
  const std::vector<Absence> around = {{0, -14, 1}, {1, 80, 99}};
  EXPECT_EQ(find_free_returns(plan.problem, liveness, plan.decisions, around, 100), std::vector<bool>({false, true}));
}

// Of three blocks two are there at a time: the first with the second, the second with the third, the third with the
// first again, which was away. In two places only if it comes back to the second one's.
testing::Plan three_in_two() {
  testing::Plan plan;
  plan.problem.blocks = {{.id = 0, .bytes = 100}, {.id = 1, .bytes = 100}, {.id = 2, .bytes = 100}};
  using enum Kind;
  plan.problem.operations = {{kMalloc, 0, 0},          {kMalloc, 1, 10}, {kWrite, 0, 20}, {kWrite, 1, 30},
                             {kMalloc, 2, 60},         {kWrite, 2, 70},  {kFree, 1, 80},  {kWrite, 2, 90},
                             {kNothing, kNoBlock, 91}, {kRead, 0, 120},  {kFree, 2, 130}, {kFree, 0, 140}};
  plan.problem.period = 150;
  plan.problem.machine = {10, 10, 0, 0, 1};
  plan.problem.chunk = 100;
  plan.problem.align = 100;
  plan.problem.blocks[1].pinned = plan.problem.blocks[2].pinned = true;
  plan.decisions.swaps = {{.block = 0, .out_after = 2, .in_after = 6, .need = 9}};
  plan.decisions.places = {{{0}, true}, {{100}, false}, {{200}, false}};
  return plan;
}

std::uint64_t least_footprint(const testing::Plan& plan) {
  const auto placed = lay_out_in_time(plan.problem, find_liveness(plan.problem), plan.decisions, {.work = 20000});
  EXPECT_TRUE(placed);
  EXPECT_EQ(verify(plan.problem, *placed, {.no_early = true}).fault, std::nullopt);
  return footprint_of(plan.problem, *placed);
}

TEST(Returns, ElsewhereThereIsRoom) {
  testing::Plan plan = three_in_two();
  EXPECT_EQ(least_footprint(plan), 200u);
  plan.problem.machine.remap_ns = 1000;
  EXPECT_EQ(least_footprint(plan), 300u);
  plan.problem.machine.remap_ns.reset();
  EXPECT_EQ(least_footprint(plan), 300u);
}

TEST(Returns, ASearchUsesThem) {
  Problem problem = three_in_two().problem;
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = 500;
  limits.in_step = true;
  const auto found = [&] { return search(problem, find_liveness(problem), Objective::kFootprint, limits); };
  const SearchPlan plan = found();
  EXPECT_EQ(plan.footprint, 200u);
  EXPECT_EQ(verify(problem, plan.decisions, {.no_early = true}).fault, std::nullopt);
  problem.machine.remap_ns.reset();
  EXPECT_EQ(found().footprint, 300u);
}

// Whatever is found holds, and is not mapped anew without a price.
TEST(Returns, PlansOfSearchesHold) {
  testing::TinyProblems problems(23);
  std::uint64_t elsewhere = 0, lower = 0;
  const int wanted = testing::problems_wanted(60);
  for (int i = 0; i < wanted + 4; ++i) {
    Problem problem = i < wanted ? problems.next(true, 60) : testing::busy_problem(static_cast<std::uint64_t>(i));
    problem.machine.remap_ns = i % 3;
    const Liveness liveness = find_liveness(problem);
    SearchLimits limits;
    limits.time = std::chrono::nanoseconds::max();
    limits.attempts = 200;
    limits.seed = static_cast<std::uint64_t>(i);
    limits.in_step = i % 4 != 0;
    const bool timed = i % 2 == 0;
    if (timed) problem.limit = liveness.peak * static_cast<std::uint64_t>(50 + i % 50) / 100;
    const SearchPlan plan = search(problem, liveness, timed ? Objective::kTime : Objective::kFootprint, limits);
    if (!plan.feasible) continue;
    const Report report = verify(problem, plan.decisions, {.no_early = true});
    ASSERT_EQ(report.fault, std::nullopt) << "problem " << i;
    ASSERT_EQ(report.footprint, plan.footprint) << "problem " << i;
    ASSERT_NEAR(report.timing.added_ns, plan.added_ns, 1e-3) << "problem " << i;
    elsewhere += report.returns_elsewhere;
    Decisions there = plan.decisions;
    for (Swap& swap : there.swaps) swap.returns_to.clear();
    lower += verify(problem, there, {.no_early = true}).fault ? 1 : 0;
  }
  EXPECT_GT(elsewhere, 20u);
  EXPECT_GT(lower, 2u);  // that do not hold where all return to where they were
}

}  // namespace
}  // namespace memopt::swap
