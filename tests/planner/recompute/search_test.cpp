// Policies and our own search, held against everything that can be tried.
#include "planner/recompute/search/search.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <random>

#include "planner/recompute/bounds/bound.h"
#include "planner/recompute/online/dtr.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/optimum.h"
#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using layout::kSanitized;
using testing::expect_above_optimum;
using testing::layers;
using testing::optimum;
using testing::random_program;

SearchLimits attempts(std::uint64_t count) {
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = count;
  return limits;
}

struct Iteration : testing::Iteration {
  using testing::Iteration::Iteration;

  std::optional<Cost> by(Heuristic heuristic, std::uint64_t budget) const {
    const auto policy = make_dtr(problem, graph, heuristic);
    auto found = cost(run_online(problem, liveness, graph, budget, *policy, 1e9));
    if (found) {
      EXPECT_EQ(found->fault, std::nullopt) << name_of(heuristic);
    }
    return found;
  }
};

TEST(Recompute, NothingIsDroppedWhereThereIsRoom) {
  const Iteration iteration(layers(10));
  ASSERT_EQ(iteration.liveness.peak, 1200u);
  for (const Heuristic heuristic : kHeuristics) {
    const auto cost = iteration.by(heuristic, 1200);
    ASSERT_TRUE(cost) << name_of(heuristic);
    EXPECT_EQ(cost->drops + cost->replays, 0u) << name_of(heuristic);
  }
  EXPECT_FALSE(iteration.by(Heuristic::kDtr, 200));
}

// In a chain, in the square root of the memory, about once more is computed (Chen et al. 2016, section 4.1).
TEST(Recompute, AChainTakesLittleMoreThanItsRootOnceMore) {
  const Iteration iteration(layers(100));
  const auto cost = iteration.by(Heuristic::kDtrEq, 100 * 25);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->fault, std::nullopt);
  EXPECT_LE(cost->added_ns, 1.5 * 100 * 10);
  const auto found = search(iteration.problem, iteration.liveness, iteration.graph, 100 * 25, attempts(200));
  ASSERT_TRUE(found);
  EXPECT_LE(found->cost.added_ns, 100 * 10);
}

TEST(Recompute, ManyLayersAreNoDeepStack) {
  const Iteration iteration(layers(kSanitized ? 2000 : 5000));
  const auto cost = iteration.by(Heuristic::kLru, iteration.liveness.peak / 4);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->fault, std::nullopt);
}

// Half of what lives at the turn has to be made again, each layer once: not the last ones, which are there.
TEST(Recompute, NoPlanIsBelowTheBound) {
  const Iteration iteration(layers(40));
  const auto bound = [&](std::uint64_t budget) {
    return least_added_ns(iteration.problem, iteration.liveness, iteration.graph, budget);
  };
  ASSERT_EQ(iteration.liveness.peak, 4200u);
  EXPECT_EQ(bound(4200), 0);
  EXPECT_NEAR(bound(2200), 20 * 10, 1e-6);
  EXPECT_NEAR(bound(2150), 20 * 10 + 5, 1e-6);
  EXPECT_EQ(bound(299), std::numeric_limits<double>::infinity());  // a launch reads two and writes one
  const auto found = search(iteration.problem, iteration.liveness, iteration.graph, 2200, attempts(300));
  ASSERT_TRUE(found);
  EXPECT_GE(found->cost.added_ns, bound(2200));
}

// What is not used any more is dropped for nothing, whatever was looked at before.
TEST(Recompute, WhatIsNotUsedAnyMoreCostsNothingInTheBound) {
  testing::Program program;
  const auto used = program.make(100, 10, {});
  const auto unused = program.make(100, 10, {});
  for (int k = 0; k < 3; ++k) program.release(program.make(50, 1, {}));
  const auto large = program.make(120, 1, {});
  const auto larger = program.make(50, 1, {});
  program.launch(1, {used, large}, {});
  for (const auto b : {used, unused, large, larger}) program.release(b);
  const Iteration iteration(program.problem());
  const auto bound = [&](std::uint64_t budget) {
    return least_added_ns(iteration.problem, iteration.liveness, iteration.graph, budget);
  };
  EXPECT_EQ(bound(270), 0);
  EXPECT_NEAR(bound(220), 50. / 120, 1e-9);  // of the large one, which is the cheaper, when the last one is made
  EXPECT_EQ(bound(219), std::numeric_limits<double>::infinity());
}

// Replayed for one of them, it would need the other as it was before: neither is dropped before its last use.
TEST(Recompute, WhatALaunchChangesTogetherStays) {
  testing::Program program;
  const auto x = program.allocate(10), y = program.allocate(10);
  program.launch(1, {}, {x, y});
  program.launch(1, {x, y}, {x, y});
  const auto large = program.make(20, 1, {});
  program.launch(1, {large}, {});
  program.release(large);
  program.launch(1, {x}, {});
  program.release(x);
  program.launch(1, {y}, {});
  program.release(y);
  const Iteration iteration(program.problem());
  EXPECT_FALSE(iteration.graph.may_be_dropped(x, iteration.graph.last_use[x]));
  EXPECT_FALSE(iteration.graph.may_be_dropped(y, iteration.graph.last_use[y]));
  EXPECT_TRUE(iteration.graph.may_be_dropped(y, iteration.graph.last_use[y] + 1));
  for (const Heuristic heuristic : kHeuristics) {
    EXPECT_FALSE(iteration.by(heuristic, 30)) << name_of(heuristic);
    EXPECT_TRUE(iteration.by(heuristic, 40)) << name_of(heuristic);
  }
  EXPECT_EQ(optimum(iteration.problem, iteration.liveness, 30), 2);  // both together
}

// A replay for the first output finds the second one as the program has made it so far: it changes that in place later.
TEST(Recompute, WhatTheProgramGoesOnWithStays) {
  testing::Program program;
  const auto x = program.allocate(100), y = program.allocate(10);
  program.launch(1, {}, {x, y});
  const auto z = program.make(100, 1, {});
  program.release(z);
  program.launch(1, {x}, {});
  program.launch(1, {y}, {y});
  program.launch(1, {x, y}, {});
  program.release(x);
  program.release(y);
  const Iteration iteration(program.problem());
  for (const Heuristic heuristic : kHeuristics) {
    const auto found = iteration.by(heuristic, 150);
    ASSERT_TRUE(found) << name_of(heuristic);
    EXPECT_EQ(found->added_ns, 1) << name_of(heuristic);
  }
}

// Once more with the weights that were found is the plan that was found with them; nothing published is tried.
TEST(Recompute, GoesOnFromWeights) {
  const Iteration iteration(layers(40));
  const auto found = search(iteration.problem, iteration.liveness, iteration.graph, 100 * 12, attempts(300));
  ASSERT_TRUE(found);
  const auto again =
      search(iteration.problem, iteration.liveness, iteration.graph, 100 * 12, attempts(1), &found->weights);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->cost.added_ns, found->cost.added_ns);
  Weights nothing;
  nothing.ancestors = nothing.descendants = nothing.cost = nothing.bytes = nothing.next = 0;
  const auto worse = search(iteration.problem, iteration.liveness, iteration.graph, 100 * 12, attempts(1), &nothing);
  EXPECT_TRUE(!worse || worse->cost.added_ns > found->cost.added_ns);
}

TEST(Recompute, EndsWhenItIsCancelled) {
  const Iteration iteration(layers(50));
  SearchLimits limits;
  limits.time = std::chrono::hours(1);
  const std::atomic<bool> cancelled = true;
  limits.cancelled = &cancelled;
  const auto found = search(iteration.problem, iteration.liveness, iteration.graph, 100 * 20, limits);
  ASSERT_TRUE(found);  // a published policy's
  EXPECT_EQ(found->cost.fault, std::nullopt);
}

TEST(Recompute, WithoutTimeLimitPlansRepeat) {
  const Iteration iteration(layers(40));
  SearchLimits limits = attempts(100);
  limits.threads = 3;
  const auto one = search(iteration.problem, iteration.liveness, iteration.graph, 100 * 12, limits);
  const auto other = search(iteration.problem, iteration.liveness, iteration.graph, 100 * 12, limits);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->steps, other->steps);
}

// Every policy's plan holds, none is better than the best there is, and ours is nearly always that.
TEST(Recompute, PlansOfSmallProgramsAgainstAllThereAre) {
  std::mt19937_64 random(5);
  const int wanted = kSanitized ? 8 : 30;
  int possible = 0, found_best = 0, published = 0, published_best = 0;
  double all_bounds = 0, all_best = 0;
  for (int k = 0; k < wanted; ++k) {
    const Iteration iteration(random_program(random, kSanitized ? 7 : 8 + k % 4));
    for (const std::uint64_t percent : {50, 65, 80, 90}) {
      const std::uint64_t budget = iteration.liveness.peak * percent / 100;
      const auto best = optimum(iteration.problem, iteration.liveness, budget);
      const double bound = least_added_ns(iteration.problem, iteration.liveness, iteration.graph, budget);
      ASSERT_LE(bound, best.value_or(std::numeric_limits<double>::infinity()) + 1e-6) << "program " << k;
      if (best) {
        all_bounds += bound;
        all_best += *best;
      }
      for (const Heuristic heuristic : kHeuristics) {
        const auto cost = iteration.by(heuristic, budget);
        if (!cost) continue;
        expect_above_optimum(*cost, budget, best, std::to_string(k) + ", " + std::string(name_of(heuristic)));
        ASSERT_FALSE(HasFailure());
        ++published;
        published_best += cost->added_ns < *best + 1e-6 ? 1 : 0;
      }
      const auto found = search(iteration.problem, iteration.liveness, iteration.graph, budget, attempts(300));
      if (!best) {
        ASSERT_FALSE(found) << "program " << k;
        continue;
      }
      ++possible;
      if (!found) continue;
      ASSERT_EQ(found->cost.fault, std::nullopt) << "program " << k;
      ASSERT_LE(found->cost.peak, budget) << "program " << k;
      ASSERT_GE(found->cost.added_ns, *best - 1e-6) << "program " << k;
      found_best += found->cost.added_ns < *best + 1e-6 ? 1 : 0;
    }
  }
  std::printf("%d possible, best found in %d; published policies %d plans, %d the best; bounds %.2f of the best\n",
              possible, found_best, published, published_best, all_bounds / all_best);
  EXPECT_GT(possible, wanted);
  EXPECT_GT(found_best, possible * 8 / 10);
  EXPECT_GT(published, possible);
  EXPECT_GT(all_bounds, (kSanitized ? 0.1 : 0.25) * all_best);
}

}  // namespace
}  // namespace memopt::recompute
