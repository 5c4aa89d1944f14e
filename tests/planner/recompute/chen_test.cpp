// The strategies of Chen et al., held against what the paper promises of chains, and against everything that can be
// tried.
#include "planner/recompute/published/chen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/optimum.h"
#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using layout::kSanitized;
using testing::expect_above_optimum;
using testing::for_small_programs;
using testing::layers;
using testing::optimum;
using testing::Program;
using testing::random_program;

struct Iteration : testing::Iteration {
  using testing::Iteration::Iteration;

  std::optional<Cost> by(Chen strategy, std::uint64_t limit) const {
    return cost(chen(problem, liveness, graph, strategy, limit));
  }
  std::uint64_t least_limit(Chen strategy) const {
    std::uint64_t low = 0, high = liveness.peak;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      by(strategy, middle) ? high = middle : low = middle + 1;
    }
    return low;
  }
};

TEST(Chen, NothingIsDroppedWhereThereIsRoom) {
  const Iteration iteration(layers(10));
  for (const Chen strategy : {Chen::kBudget, Chen::kRecursive, Chen::kDropCheap}) {
    const auto cost = iteration.by(strategy, iteration.liveness.peak);
    ASSERT_TRUE(cost) << name_of(strategy);
    EXPECT_EQ(cost->drops + cost->replays, 0u) << name_of(strategy);
  }
  for (const Chen strategy : kChens) EXPECT_FALSE(iteration.by(strategy, 200)) << name_of(strategy);
}

// As the paper has it: 2 sqrt(n) blocks for one more forward pass.
TEST(Chen, RootsOfLayersTakeOneMoreForwardPass) {
  for (const int n : {16, 64, 100, 400}) {
    const Iteration iteration(layers(n));
    const auto cost = iteration.by(Chen::kSqrt, static_cast<std::uint64_t>(100 * (2 * std::sqrt(n) + 3)));
    ASSERT_TRUE(cost) << n;
    EXPECT_EQ(cost->fault, std::nullopt) << n;
    EXPECT_LE(cost->added_ns, 10 * n) << n;
  }
}

TEST(Chen, ABudgetIsAtLeastAsGoodAsRoots) {
  for (const int n : {10, 33, 100, 256}) {
    if (kSanitized && n > 33) break;
    const Iteration iteration(layers(n));
    std::uint64_t limit = iteration.least_limit(Chen::kSqrt);
    EXPECT_LE(iteration.least_limit(Chen::kBudget), limit) << n;
    for (; limit < iteration.liveness.peak; limit += 300) {
      const auto root = iteration.by(Chen::kSqrt, limit);
      const auto budget = iteration.by(Chen::kBudget, limit);
      ASSERT_TRUE(root && budget) << n << ", " << limit;
      EXPECT_EQ(budget->fault, std::nullopt) << n << ", " << limit;
      EXPECT_LE(budget->peak, limit) << n;
      EXPECT_LE(budget->added_ns, root->added_ns) << n << ", " << limit;
    }
  }
}

TEST(Chen, ABudgetIsAsGoodAsEverySegmentationOfAChain) {
  for (int n = 2; n <= (kSanitized ? 7 : 10); ++n) {
    const Iteration iteration(layers(n));
    std::vector<Cost> costs;
    for (std::uint32_t cuts = 0; cuts < 1U << n; ++cuts) {
      std::vector<std::uint32_t> starts;
      for (std::uint32_t l = 0; l < static_cast<std::uint32_t>(n); ++l) {
        if ((cuts >> l & 1) != 0) starts.push_back(l + 1);
      }
      const auto steps = keep_segments(iteration.problem, iteration.graph, starts);
      ASSERT_TRUE(steps);
      costs.push_back(find_cost(iteration.problem, iteration.liveness, iteration.graph, *steps));
      ASSERT_EQ(costs.back().fault, std::nullopt);
    }
    for (std::uint64_t limit = 100; limit <= iteration.liveness.peak; limit += 100) {
      std::optional<double> least;
      for (const Cost& cost : costs) {
        if (cost.peak <= limit) least = std::min(least.value_or(cost.added_ns), cost.added_ns);
      }
      const auto cost = iteration.by(Chen::kBudget, limit);
      ASSERT_EQ(cost.has_value(), least.has_value()) << n << ", " << limit;
      if (least) {
        EXPECT_EQ(cost->added_ns, *least) << n << ", " << limit;
      }
    }
  }
}

// As the paper has it, log2(n) for k = 1.
TEST(Chen, RecursionTakesALogarithmOfTheLayers) {
  const Iteration iteration(layers(256));
  const auto cost = iteration.by(Chen::kRecursive, 100 * (8 + 4));
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->fault, std::nullopt);
  EXPECT_LE(cost->added_ns, 10 * 256 * 8);
  const auto roomy = iteration.by(Chen::kRecursive, 100 * 40);
  ASSERT_TRUE(roomy);
  EXPECT_LE(roomy->added_ns, 10 * 256 * 1.5);
  EXPECT_LT(iteration.least_limit(Chen::kRecursive), iteration.least_limit(Chen::kBudget) / 2);
}

// Dear blocks of 100 ns and cheap ones of 1 ns in turn, all of them read backward.
TEST(Chen, WhatIsCheapIsDropped) {
  Program program;
  std::vector<std::uint32_t> made = {program.make(100, 100, {})};
  for (int k = 1; k < 12; ++k) made.push_back(program.make(100, k % 2 == 0 ? 100 : 1, {made.back()}));
  std::uint32_t gradient = program.make(10, 5, {made.back()});
  for (std::size_t k = made.size(); k-- > 0;) {
    const std::uint32_t next = program.make(10, 5, {made[k], gradient});
    program.release(made[k]);
    program.release(gradient);
    gradient = next;
  }
  program.release(gradient);
  const Iteration iteration(program.problem());
  const auto cost = iteration.by(Chen::kDropCheap, 800);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->fault, std::nullopt);
  EXPECT_EQ(cost->added_ns, 6);
  EXPECT_FALSE(iteration.by(Chen::kDropCheap, 600));
}

// In a chain of launches of which some values are freed early, as those between a layer's operators are.
TEST(Chen, WhatTheProgramFreesIsMadeForAReplayAndDropped) {
  Program program;
  std::vector<std::uint32_t> made = {program.make(100, 10, {})};
  for (int k = 1; k < 16; ++k) {
    const std::uint32_t between = program.make(100, 1, {made.back()});
    made.push_back(program.make(100, 10, {between}));
    program.release(between);
  }
  for (std::size_t k = made.size(); k-- > 0;) {
    program.launch(10, {made[k]}, {});
    program.release(made[k]);
  }
  const Iteration iteration(program.problem());
  const auto cost = iteration.by(Chen::kBudget, 900);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->fault, std::nullopt);
  EXPECT_LE(cost->added_ns, 16 * 11);
}

TEST(Chen, PlansOfSmallProgramsAgainstAllThereAre) {
  int plans = 0, replaying = 0;
  for_small_programs(kSanitized ? 5 : 30, [&](const auto& iteration, std::uint64_t limit, const std::string& what) {
    const auto best = optimum(iteration.problem, iteration.liveness, limit);
    for (const Chen strategy : kChens) {
      const auto cost = iteration.cost(chen(iteration.problem, iteration.liveness, iteration.graph, strategy, limit));
      if (!cost) continue;
      expect_above_optimum(*cost, limit, best, what + ", " + std::string(name_of(strategy)));
      ASSERT_FALSE(HasFailure());
      ++plans;
      replaying += cost->replays > 0 ? 1 : 0;
    }
  });
  std::printf("%d plans, %d of which replay\n", plans, replaying);
  EXPECT_GT(plans, kSanitized ? 0 : 20);
}

// Every segmentation of any program holds, whatever its limit.
TEST(Chen, NoSegmentationOfAnyProgramHasAFault) {
  std::mt19937_64 random(11);
  std::uint64_t replays = 0;
  for (int k = 0; k < (kSanitized ? 100 : 2000); ++k) {
    const Iteration iteration(random_program(random, 10 + k % 40));
    std::vector<std::uint32_t> starts;
    for (std::uint32_t l = 1; l < iteration.graph.launches.size(); ++l) {
      if (random() % 3 == 0) starts.push_back(l);
    }
    const auto steps = keep_segments(iteration.problem, iteration.graph, starts);
    ASSERT_TRUE(steps) << k;
    const Cost cost = find_cost(iteration.problem, iteration.liveness, iteration.graph, *steps);
    ASSERT_EQ(cost.fault, std::nullopt) << k;
    replays += cost.replays;
  }
  EXPECT_GT(replays, 0u);
}

TEST(Chen, ManyLayers) {
  const Iteration iteration(layers(kSanitized ? 500 : 5000));
  const std::uint64_t limit = iteration.liveness.peak / 4;
  for (const Chen strategy : kChens) {
    const auto cost = iteration.by(strategy, limit);
    EXPECT_EQ(cost.has_value(), strategy != Chen::kDropCheap) << name_of(strategy);  // all take as long
    if (!cost) continue;
    EXPECT_EQ(cost->fault, std::nullopt) << name_of(strategy);
    EXPECT_LE(cost->peak, limit) << name_of(strategy);
  }
}

}  // namespace
}  // namespace memopt::recompute
