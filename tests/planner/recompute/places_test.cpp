// Plans with places: whatever lies where, no two lives share a byte while both are there, by a check that knows neither
// layouts nor simulators.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/places/descent.h"
#include "planner/recompute/places/placed.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using layout::kSanitized;
using testing::Iteration;
using testing::layers;
using testing::Program;
using testing::random_program;
using Kind = Step::Kind;

SearchLimits some_attempts(std::uint64_t count, unsigned threads = 1) {
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = count;
  limits.threads = threads;
  return limits;
}

// By operation: whether the life has its bytes then, as the list of operations has it.
std::vector<bool> presence(const swap::Problem& problem, const std::vector<swap::Swap>& swaps, std::uint32_t life) {
  const std::size_t n = problem.operations.size();
  std::vector<bool> there(n, problem.blocks[life].persistent);
  for (std::size_t i = 0; i < n; ++i) {
    const swap::Operation& one = problem.operations[i];
    if (one.block != life || one.kind != swap::Kind::kMalloc) continue;
    for (std::size_t k = i; k < n; ++k) {
      there[k] = true;
      if (problem.operations[k].block == life && problem.operations[k].kind == swap::Kind::kFree) break;
    }
  }
  for (const swap::Swap& swap : swaps) {
    if (swap.block != life) continue;
    const std::size_t back = swap.returns() ? swap.need : n;
    for (std::size_t k = swap.out_after + 1; k < back; ++k) there[k % n] = false;
  }
  return there;
}

// What is wrong with the places; empty: nothing.
std::string place_fault(const swap::Problem& problem, const swap::Decisions& decisions) {
  if (decisions.places.size() != problem.blocks.size()) return "not all have places";
  std::vector<std::vector<bool>> there;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) there.push_back(presence(problem, decisions.swaps, b));
  for (std::uint32_t a = 0; a < problem.blocks.size(); ++a) {
    const std::string life = "life " + std::to_string(a);
    if (decisions.places[a].offsets.size() != 1) return life + " has several places";
    const std::uint64_t from = decisions.places[a].offsets[0], to = from + problem.blocks[a].bytes;
    if (from % (decisions.places[a].own ? problem.chunk : problem.align) != 0) return life + " is misaligned";
    if (to > *problem.limit) return life + " ends above the limit";
    for (std::uint32_t b = 0; b < a; ++b) {
      const std::uint64_t its = decisions.places[b].offsets[0];
      if (to <= its || its + problem.blocks[b].bytes <= from || from == to || problem.blocks[b].bytes == 0) continue;
      for (std::size_t i = 0; i < there[a].size(); ++i) {
        if (there[a][i] && there[b][i])
          return life + " and life " + std::to_string(b) + " overlap at operation " + std::to_string(i);
      }
    }
  }
  return "";
}

void expect_holds(const Iteration& iteration, std::uint64_t limit, const Combined& plan, const std::string& what) {
  const auto cost = iteration.cost(plan.steps);
  EXPECT_EQ(cost->fault, std::nullopt) << what;
  const Extended extended = extend_with_layout(iteration.problem, iteration.graph, plan.steps, limit);
  EXPECT_EQ(place_fault(extended.problem, plan.decisions), "") << what;
  const swap::Report report = swap::verify(extended.problem, plan.decisions);
  EXPECT_EQ(report.fault, std::nullopt) << what;
  EXPECT_EQ(find_launch_fault(extended.problem, plan.decisions.swaps), std::nullopt) << what;
  EXPECT_NEAR(report.timing.added_ns, plan.waits_ns, 1e-6) << what;
  EXPECT_EQ(report.footprint, plan.footprint) << what;
  EXPECT_LE(*plan.footprint, limit) << what;
  EXPECT_GE(*plan.footprint, plan.load) << what;
  if (plan.decisions.swaps.empty()) {
    EXPECT_EQ(plan.load, cost->peak) << what;
  }
  // What a file says.
  const std::vector<swap::Place> of_blocks(
      plan.decisions.places.begin(),
      plan.decisions.places.begin() + static_cast<std::ptrdiff_t>(iteration.problem.blocks.size()));
  EXPECT_EQ(places_of_lives(extended, of_blocks, places_of_steps(extended, plan.decisions.places)),
            plan.decisions.places)
      << what;
}

TEST(Places, AFileHasThemByStep) {
  const testing::MadeAgainBesides made;
  const auto& [iteration, steps] = std::tie(made.iteration, made.steps);
  const std::uint32_t x = made.x, y = made.y, z = made.z;
  ASSERT_EQ(iteration.cost(steps)->fault, std::nullopt);
  const Extended extended = extend(iteration.problem, iteration.graph, steps);
  const std::vector<swap::Place> places = {{{400}}, {{0}}, {{100}}, {{0}}, {{160}}, {{200}, true}, {{300}}};
  const std::vector<StepPlace> of_steps = places_of_steps(extended, places);
  EXPECT_EQ(of_steps, (std::vector<StepPlace>{{1, x, {{200}, true}}, {1, y, {{300}}}}));
  const std::vector<swap::Place> of_blocks(places.begin(), places.begin() + 5);
  EXPECT_EQ(places_of_lives(extended, of_blocks, {of_steps[1], of_steps[0]}), places);
  const auto why = [&](std::vector<StepPlace> given, std::size_t blocks = 5) -> std::string {
    try {
      places_of_lives(extended, std::vector<swap::Place>(blocks), given);
    } catch (const swap::Invalid& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why(of_steps, 0), "expected a place for each block, found none");
  EXPECT_EQ(why({of_steps[0]}), "recompute[1].places: expected one of block 2, which takes its bytes there");
  EXPECT_EQ(why({of_steps[0], of_steps[0]}), "recompute[1].places: block 1 is given twice");
  EXPECT_EQ(why({of_steps[0], of_steps[1], {1, z, {}}}), "recompute[1].places: block 4 takes no bytes there");
  EXPECT_EQ(why({of_steps[0], of_steps[1], {0, x, {}}}), "recompute[0].places: block 1 takes no bytes there");
}

// Seven layers are within the load, but each lies at a multiple of 128.
TEST(Places, LessIsKeptWhereALayoutIsAboveItsLoad) {
  swap::Problem problem = layers(12);
  problem.align = 128;
  const Iteration iteration(std::move(problem));
  const std::uint64_t limit = 800;
  const auto by_load = search(iteration.problem, iteration.liveness, iteration.graph, limit, some_attempts(50));
  const auto plan =
      plan_with_places(iteration.problem, iteration.liveness, iteration.graph, limit, std::nullopt, some_attempts(50));
  ASSERT_TRUE(by_load && plan);
  expect_holds(iteration, limit, *plan, "layers");
  EXPECT_EQ(by_load->cost.peak, 800u);
  EXPECT_EQ(plan->load, 600u);  // the seventh would end at 868
  EXPECT_GT(plan->added_ns(), by_load->cost.added_ns);
  const LaidOut above = lay_out(iteration.problem, iteration.graph,
                                {.steps = by_load->steps, .cost = by_load->cost, .decisions = {}, .load = 800}, limit,
                                layout_effort(iteration.problem, some_attempts(50)));
  EXPECT_FALSE(above.plan);
  EXPECT_EQ(above.footprint, 7 * 128u + 100);
  // The check of these tests sees what is wrong.
  const Extended extended = extend_with_layout(iteration.problem, iteration.graph, plan->steps, limit);
  const auto fault = [&](std::uint64_t from, std::uint64_t to) {
    swap::Decisions moved = plan->decisions;
    for (swap::Place& place : moved.places) {
      if (place.offsets[0] == from) place.offsets[0] = to;
    }
    return place_fault(extended.problem, moved);
  };
  EXPECT_EQ(fault(0, 0), "");
  EXPECT_NE(fault(0, 128).find("overlap at operation"), std::string::npos);
  EXPECT_NE(fault(0, 1).find("is misaligned"), std::string::npos);
  EXPECT_NE(fault(0, 768).find("ends above the limit"), std::string::npos);
}

TEST(Places, WhereThereIsRoomForAllNothingIsDone) {
  std::mt19937_64 random(11);
  for (int k = 0; k < (kSanitized ? 20 : 100); ++k) {
    const Iteration iteration(random_program(random, 15));
    const LaidOut whole =
        lay_out(iteration.problem, iteration.graph, {.steps = {}, .cost = *iteration.cost(Steps{}), .decisions = {}},
                1 << 20, layout_effort(iteration.problem, some_attempts(1)));
    ASSERT_TRUE(whole.plan) << k;
    EXPECT_EQ(whole.plan->load, iteration.liveness.peak) << k;
    for (const auto means : {std::optional<Means>(), std::optional(Means::kBoth)}) {
      const auto plan = plan_with_places(iteration.problem, iteration.liveness, iteration.graph, *whole.plan->footprint,
                                         means, some_attempts(5));
      ASSERT_TRUE(plan) << k;
      expect_holds(iteration, *whole.plan->footprint, *plan, std::to_string(k));
      EXPECT_EQ(plan->added_ns(), 0) << k;
      EXPECT_TRUE(plan->steps.empty()) << k;
    }
  }
}

TEST(Places, PlansOfRandomProgramsHold) {
  std::mt19937_64 random(12);
  int replayed = 0, possible = 0, swapped = 0;
  for (int k = 0; k < (kSanitized ? 16 : 60); ++k) {
    swap::Problem problem = random_program(random, 15);
    const double rate = 0.5 * static_cast<double>(1 + random() % 12);
    problem.machine = {rate, rate, 0, 0};
    problem.align = std::uint64_t{1} << random() % 4;
    problem.chunk = std::uint64_t{1} << random() % 6;
    const Iteration iteration(std::move(problem));
    const std::uint64_t limit = iteration.liveness.peak * (60 + random() % 40) / 100;
    for (const auto means : {std::optional<Means>(), std::optional(Means::kSwaps), std::optional(Means::kBoth)}) {
      // A search for swaps takes long.
      if (means && k % (means == Means::kBoth ? 4 : 8) != 0) continue;
      const auto plan =
          plan_with_places(iteration.problem, iteration.liveness, iteration.graph, limit, means, some_attempts(10));
      if (!plan) continue;
      const std::string what = std::to_string(k);
      expect_holds(iteration, limit, *plan, what);
      ++possible;
      replayed += plan->steps.empty() ? 0 : 1;
      swapped += plan->decisions.swaps.empty() ? 0 : 1;
      if (!means) {
        EXPECT_TRUE(plan->decisions.swaps.empty()) << what;
      }
      if (means == Means::kSwaps) {
        EXPECT_TRUE(plan->steps.empty()) << what;
      }
    }
  }
  EXPECT_GT(possible, kSanitized ? 5 : 40);
  EXPECT_GT(replayed, kSanitized ? 1 : 15);
  EXPECT_GT(swapped, 1);
}

// Of a strategy that knows of no places: asked for less load until its plan has some.
TEST(Places, ADescentEndsWithTheBestThatHasThem) {
  swap::Problem problem = layers(30);
  problem.align = 128;
  const Iteration iteration(std::move(problem));
  std::vector<std::uint64_t> asked;
  DescentLimits limits;
  limits.layouts = layout_effort(iteration.problem, some_attempts(1));
  const auto plan = descend(
      iteration.problem, iteration.graph, 1500,
      [&](std::uint64_t load, double) -> std::optional<Combined> {
        asked.push_back(load);
        auto found = search(iteration.problem, iteration.liveness, iteration.graph, load, some_attempts(5));
        if (!found) return std::nullopt;
        return Combined{
            .steps = std::move(found->steps), .cost = found->cost, .decisions = {}, .load = found->cost.peak};
      },
      limits);
  ASSERT_TRUE(plan);
  expect_holds(iteration, 1500, *plan, "layers");
  EXPECT_EQ(plan->load, 1100u);  // 10 * 128 + 100 are 1380
  EXPECT_EQ(asked.front(), 1500u);
  EXPECT_LT(asked.size(), 16u);
  // No plan at all.
  EXPECT_FALSE(descend(
      iteration.problem, iteration.graph, 1500, [](std::uint64_t, double) { return std::nullopt; }, limits));
}

TEST(Places, TheSameSeedGivesTheSamePlan) {
  std::mt19937_64 random(13);
  int some = 0;
  for (int k = 0; k < 3; ++k) {
    swap::Problem problem = random_program(random, 20);
    problem.machine = {2, 2, 0, 0};
    problem.chunk = 16;
    const Iteration iteration(std::move(problem));
    const std::uint64_t limit = iteration.liveness.peak * 75 / 100;
    const auto planned = [&] {
      return plan_with_places(iteration.problem, iteration.liveness, iteration.graph, limit, Means::kBoth,
                              some_attempts(20, 2));
    };
    const auto one = planned(), other = planned();
    ASSERT_EQ(one.has_value(), other.has_value()) << k;
    if (!one) continue;
    ++some;
    EXPECT_EQ(one->steps, other->steps) << k;
    EXPECT_EQ(one->decisions, other->decisions) << k;
  }
  EXPECT_GT(some, 0);
}

// Copies hide behind the computation, but not all that has to leave: the rest is made again, in a layout as by load.
TEST(Places, BothTogetherHaveThem) {
  swap::Problem problem = layers(40);
  problem.machine = {2, 2, 0, 0};
  problem.chunk = 20;
  const Iteration iteration(std::move(problem));
  const auto planned = [&](std::optional<Means> means) {
    return plan_with_places(iteration.problem, iteration.liveness, iteration.graph, 1400, means,
                            some_attempts(kSanitized ? 40 : 100));
  };
  const auto both = planned(Means::kBoth), replays = planned(std::nullopt);
  ASSERT_TRUE(both && replays);
  expect_holds(iteration, 1400, *both, "both");
  EXPECT_FALSE(both->steps.empty());
  EXPECT_FALSE(both->decisions.swaps.empty());
  EXPECT_LT(both->added_ns(), 0.8 * replays->added_ns());
}

// Copies hide by load, and so they do with places.
TEST(Places, SwapsThatHideByLoadHideInALayout) {
  swap::Problem problem = layers(40);
  problem.machine = {100, 100, 0, 0};
  problem.chunk = 4;
  const Iteration iteration(std::move(problem));
  const auto by_load = combine(iteration.problem, iteration.liveness, iteration.graph, 2200, Means::kSwaps,
                               some_attempts(kSanitized ? 100 : 400));
  ASSERT_TRUE(by_load);
  ASSERT_EQ(by_load->added_ns(), 0);
  ASSERT_FALSE(by_load->decisions.swaps.empty());
  const LaidOut laid_out =
      lay_out(iteration.problem, iteration.graph, *by_load, 2300, layout_effort(iteration.problem, some_attempts(1)));
  ASSERT_TRUE(laid_out.plan);
  EXPECT_TRUE(laid_out.as_fast);
  expect_holds(iteration, 2300, *laid_out.plan, "layers");
  EXPECT_EQ(laid_out.plan->added_ns(), 0);
}

}  // namespace
}  // namespace memopt::recompute
