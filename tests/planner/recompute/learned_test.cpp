// The deep Q-network: its gradient, what it learns where the best is known, and its plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/learned/choices.h"
#include "planner/recompute/learned/dqn.h"
#include "planner/recompute/learned/dqn_planner.h"
#include "planner/recompute/learned/generated.h"
#include "planner/recompute/learned/network.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/optimum.h"
#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using layout::kSanitized;
using testing::layers;
using testing::optimum;
using testing::Program;
using testing::random_program;

constexpr auto kKeep = static_cast<std::uint32_t>(Choice::kKeep);
constexpr auto kRecompute = static_cast<std::uint32_t>(Choice::kRecompute);
constexpr auto kSwap = static_cast<std::uint32_t>(Choice::kSwap);

struct Iteration : testing::Iteration {
  using testing::Iteration::Iteration;

  std::uint64_t part(double of) const { return static_cast<std::uint64_t>(of * static_cast<double>(liveness.peak)); }
  DqnPlan plan(std::uint64_t budget, bool swaps, std::uint64_t episodes, std::uint64_t seed = 1) const {
    return dqn_plan(problem, liveness, graph, budget, swaps, {.episodes = episodes, .seed = seed});
  }
};

// By the functions that judge all plans, not by what the planner says of it.
void expect_holds(const Iteration& iteration, const Combined& plan, std::uint64_t budget) {
  const Cost cost = find_cost(iteration.problem, iteration.liveness, iteration.graph, plan.steps);
  ASSERT_EQ(cost.fault, std::nullopt);
  EXPECT_EQ(cost.added_ns, plan.cost.added_ns);
  EXPECT_LE(plan.load, budget);
  if (plan.decisions.swaps.empty()) {
    EXPECT_LE(cost.peak, budget);
    EXPECT_EQ(plan.waits_ns, 0);
    return;
  }
  Extended extended = extend(iteration.problem, iteration.graph, plan.steps);
  extended.problem.limit = budget;
  const swap::Report report = swap::verify(extended.problem, plan.decisions);
  ASSERT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(plan.load, swap::least_limit(extended.problem, swap::find_liveness(extended.problem), plan.decisions));
  EXPECT_EQ(find_launch_fault(extended.problem, plan.decisions.swaps), std::nullopt);
  EXPECT_EQ(report.timing.added_ns, plan.waits_ns);
}

TEST(Learned, GradientIsThatOfDifferences) {
  Network network({5, 7, 6, 3}, 3);
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  std::vector<double> inputs(5 * 8);
  for (double& one : inputs) one = normal(random);
  for (double& one : network.parameters()) one += 0.1 * normal(random);  // biases, too
  std::vector<Network::Target> targets;
  const std::vector<double> values = network.values(inputs);
  for (std::uint32_t k = 0; k < 8; ++k) {
    // Small errors and large ones, of either sign: both parts of the loss.
    const std::uint32_t output = k % 3;
    targets.push_back({output, values[3 * k + output] + (k % 2 == 0 ? 0.4 : 2.5) * (k < 4 ? 1 : -1)});
  }
  std::vector<double> gradient, unused;
  const double loss = network.loss(inputs, targets, gradient);
  EXPECT_NEAR(loss, (0.4 * 0.4 / 2 + 2.5 - 0.5) / 2, 1e-9);
  ASSERT_EQ(gradient.size(), network.parameters().size());
  ASSERT_EQ(gradient.size(), 6u * 7 + 8 * 6 + 7 * 3);
  constexpr double kStep = 1e-6;
  double largest = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double& one = network.parameters()[i];
    const double before = one;
    one = before + kStep;
    const double above = network.loss(inputs, targets, unused);
    one = before - kStep;
    const double below = network.loss(inputs, targets, unused);
    one = before;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << "parameter " << i;
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_GT(largest, 0.1);
}

TEST(Learned, AdamTakesItsFirstStepsByTheRate) {
  // Algorithm 1: with its corrections the first step is as long as the rate, whatever the gradient.
  Adam adam(2, 0.01);
  std::vector<double> parameters = {1, 1};
  adam.step(parameters, std::vector<double>{100, -0.001});
  EXPECT_NEAR(parameters[0], 0.99, 1e-5);
  EXPECT_NEAR(parameters[1], 1.01, 1e-5);
}

TEST(Learned, ANetworkLearnsWhatNoLineDivides) {
  Network network({2, 16, 1}, 1);
  Adam adam(network.parameters().size(), 0.01);
  const std::vector<double> inputs = {0, 0, 0, 1, 1, 0, 1, 1};
  const std::vector<Network::Target> targets = {{0, 0}, {0, 1}, {0, 1}, {0, 0}};
  std::vector<double> gradient;
  for (int k = 0; k < 1000; ++k) {
    network.loss(inputs, targets, gradient);
    adam.step(network.parameters(), gradient);
  }
  EXPECT_LT(network.loss(inputs, targets, gradient), 1e-3);
}

TEST(Learned, ANetworkWithoutUnitsIsRefused) {
  EXPECT_THROW(Network({3}, 1), std::invalid_argument);
  EXPECT_THROW(Network({3, 0, 2}, 1), std::invalid_argument);
}

// Six states in a row. Right: the next one; out of the last that ends it, with a reward of 1. Left: the first one
// again, with a reward of 0.05. A third action, which would be the best, is never legal. The best is to go right: from
// state s that is worth 0.9^(5 - s), and 0.05 + 0.9^6 to go left once.
class Chain : public Environment {
 public:
  std::size_t features() const override { return 6; }
  std::uint32_t actions() const override { return 3; }
  void begin() override { state_ = 0; }
  bool is_over() const override { return state_ == 6; }
  void observe(std::span<double> features) const override {
    std::fill(features.begin(), features.end(), 0);
    features[state_] = 1;
  }
  std::uint32_t legal() const override { return 0b011; }
  double act(std::uint32_t action) override {
    if (action == 2) return 100;
    state_ = action == 1 ? state_ + 1 : 0;
    return action == 0 ? 0.05 : state_ == 6 ? 1 : 0;
  }

 private:
  std::size_t state_ = 0;
};

TEST(Learned, OptionsThatMakeNoSenseAreRefused) {
  const auto refusal = [](const DqnOptions& options) -> std::string {
    try {
      const Dqn dqn(2, 2, options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.batch = 0}), "DqnOptions::batch: expected more than 0");
  EXPECT_EQ(refusal({.learn_every = 0}), "DqnOptions::learn_every: expected more than 0");
  EXPECT_EQ(refusal({.update_every = 0}), "DqnOptions::update_every: expected more than 0");
  EXPECT_EQ(refusal({.steps = 0}), "DqnOptions::steps: expected more than 0");
  EXPECT_EQ(refusal({.memory = 31, .first = 0}),
            "DqnOptions::memory: expected room for a batch, and for the first transitions");
  EXPECT_EQ(refusal({.memory = 499}), "DqnOptions::memory: expected room for a batch, and for the first transitions");
}

TEST(Learned, FindsTheBestPolicyOfAChain) {
  DqnOptions options;
  options.hidden = {24, 24};
  options.discount = 0.9;
  options.rate = 2e-3;
  options.update_every = 50;
  options.steps = 1;
  options.seed = 7;
  Chain chain;
  Dqn dqn(6, 3, options);
  for (int episode = 0; episode < 150; ++episode) dqn.explore(chain, std::max(0.2, 1 - episode / 100.));
  std::vector<double> state(6);
  for (std::size_t s = 0; s < 6; ++s) {
    std::fill(state.begin(), state.end(), 0);
    state[s] = 1;
    EXPECT_EQ(dqn.best_action(state, 0b011), 1u) << "state " << s;
    const std::vector<double> values = dqn.network().values(state);
    EXPECT_NEAR(values[1], std::pow(0.9, 5 - static_cast<double>(s)), 0.05) << "state " << s;
    EXPECT_NEAR(values[0], 0.05 + std::pow(0.9, 6), 0.05) << "state " << s;
  }
  EXPECT_EQ(dqn.exploit(chain), 1);
}

// What all rewards of an episode come to is its worth, and something that is the same for all: the best is the same.
TEST(Learned, ShapingChangesNothingButWhen) {
  const Iteration iteration(layers(8));
  for (const bool swaps : {false, true}) {
    ChoiceEnvironment environment(iteration.problem, iteration.liveness, iteration.graph, iteration.part(0.6), swaps);
    std::mt19937_64 random(2);
    std::optional<double> shift;
    int plans = 0;
    for (int k = 0; k < 40; ++k) {
      double sum = 0;
      environment.begin();
      std::vector<double> features(environment.features());
      while (!environment.is_over()) {
        environment.observe(features);
        for (const double one : features) EXPECT_LE(std::abs(one), 10);
        std::uint32_t action = 0;
        do action = static_cast<std::uint32_t>(random() % kChoices);
        while ((environment.legal() >> action & 1) == 0);
        sum += environment.act(action);
      }
      const double difference = sum - 10 * environment.worth();
      EXPECT_NEAR(difference, shift.value_or(difference), 1e-9);
      shift = difference;
      if (environment.added_ns()) {
        ++plans;
        EXPECT_NEAR(environment.worth(),
                    -*environment.added_ns() / (iteration.problem.period + *environment.added_ns()), 1e-12);
      } else {
        EXPECT_LT(environment.worth(), -1);
      }
    }
    EXPECT_GT(plans, 0);
    EXPECT_LT(plans, 40);
  }
}

// Only what is chosen is dropped, even where nothing else would do.
TEST(Learned, WhatIsKeptIsKept) {
  const Iteration iteration(layers(8));
  ASSERT_EQ(iteration.liveness.peak, 1000u);
  ChoiceEnvironment environment(iteration.problem, iteration.liveness, iteration.graph, 800, true);
  ASSERT_EQ(environment.candidates().size(), 6u);  // the others are away for a short time, if at all
  const auto plan_of = [&](std::vector<std::uint32_t> actions) {
    actions.resize(6, kKeep);
    environment.begin();
    for (const std::uint32_t action : actions) environment.act(action);
    return environment.added_ns();
  };
  EXPECT_EQ(plan_of({}), std::nullopt);
  const double worth_of_none = environment.worth();
  EXPECT_EQ(plan_of({kRecompute}), std::nullopt);
  EXPECT_GT(environment.worth(), worth_of_none);  // it needs less, though still too much
  EXPECT_EQ(plan_of({kKeep, kRecompute, kRecompute}), 20);
  ASSERT_TRUE(environment.best());
  for (const Step& step : environment.best()->steps) {
    EXPECT_TRUE(step.kind == Step::Kind::kReplay || step.what == 1 || step.what == 2) << step.what;
  }
  // Copies take ten times as long as a launch: there is no time for two.
  const auto swapped = plan_of({kKeep, kSwap, kSwap});
  EXPECT_GT(swapped.value_or(0), 20);
  EXPECT_EQ(environment.best()->added_ns(), 20);
}

TEST(Learned, TheSameSeedGivesTheSamePlan) {
  const Iteration iteration(layers(10));
  const auto curve = [](const DqnPlan& plan) {
    std::vector<double> all;
    for (const Episode& one : plan.episodes) all.insert(all.end(), {one.epsilon, one.worth});
    return all;
  };
  for (const bool swaps : {false, true}) {
    const DqnPlan one = iteration.plan(600, swaps, 120);
    ASSERT_TRUE(one.plan);
    DqnPlan other, third;
    {
      const std::jthread a([&] { other = iteration.plan(600, swaps, 120); });
      const std::jthread b([&] { third = iteration.plan(600, swaps, 120, 2); });
    }
    EXPECT_EQ(one.plan->steps, other.plan->steps);
    EXPECT_EQ(one.plan->decisions, other.plan->decisions);
    EXPECT_EQ(curve(one), curve(other));
    EXPECT_NE(curve(one), curve(third));
    EXPECT_EQ(one.episodes.size(), 120u);
    ASSERT_GT(one.best_episode, 0u);
    EXPECT_EQ(one.episodes[one.best_episode - 1].added_ns, one.plan->added_ns());
    EXPECT_EQ(one.episodes.back().best_ns, one.plan->added_ns());
  }
}

TEST(Learned, EndsWhenItIsCancelledOrNothingHasToLeave) {
  const Iteration iteration(layers(10));
  const std::atomic<bool> cancelled = true;
  const DqnPlan none =
      dqn_plan(iteration.problem, iteration.liveness, iteration.graph, 600, true, {.cancelled = &cancelled});
  EXPECT_FALSE(none.plan);
  const DqnPlan room = iteration.plan(1200, true, ~std::uint64_t{0});
  ASSERT_TRUE(room.plan);
  EXPECT_EQ(room.plan->added_ns(), 0);
  EXPECT_TRUE(room.episodes.empty());
  EXPECT_FALSE(iteration.plan(200, true, 30).plan);
}

// A forward pass of layers that are dear or cheap: which it drops matters, and it learns which.
TEST(Learned, LearnsWhatIsCheap) {
  Program program;
  std::vector<std::uint32_t> made = {program.make(100, 10, {})};
  for (int k = 1; k < 12; ++k) made.push_back(program.make(100, k % 3 == 0 ? 1 : 50, {made.back()}));
  std::uint32_t gradient = program.make(100, 10, {made.back()});
  for (int k = 12; k-- > 0;) {
    const std::uint32_t next = program.make(100, 10, {made[static_cast<std::size_t>(k)], gradient});
    program.release(made[static_cast<std::size_t>(k)]);
    program.release(gradient);
    gradient = next;
  }
  program.release(gradient);
  const Iteration iteration(program.problem());
  ASSERT_EQ(iteration.liveness.peak, 1400u);
  const DqnPlan plan = iteration.plan(1200, false, 600);
  ASSERT_TRUE(plan.plan);
  expect_holds(iteration, *plan.plan, 1200);
  EXPECT_EQ(plan.plan->added_ns(), 2);  // two cheap ones
  double before = 0, after = 0;
  for (std::size_t k = 0; k < 60; ++k) {
    before += plan.episodes[k].worth / 60;
    after += plan.episodes[plan.episodes.size() - 60 + k].worth / 60;
  }
  std::printf("mean of 60 episodes: the first %.4f, the last %.4f\n", before, after);
  EXPECT_GT(after, before / 2);  // both are below 0
}

TEST(Learned, PlansOfSmallProgramsAgainstAllThereAre) {
  std::mt19937_64 random(5);
  int possible = 0, found = 0, found_best = 0, with_swaps = 0;
  for (int k = 0; k < (kSanitized ? 4 : 15); ++k) {
    const Iteration iteration(random_program(random, kSanitized ? 7 : 8 + k % 4));
    for (const double part : {0.5, 0.8}) {
      const std::uint64_t budget = iteration.part(part);
      const auto best = optimum(iteration.problem, iteration.liveness, budget);
      const auto plan = iteration.plan(budget, false, 60).plan;
      possible += best ? 1 : 0;
      if (plan) {
        ASSERT_TRUE(best) << "program " << k;
        expect_holds(iteration, *plan, budget);
        EXPECT_GE(plan->added_ns(), *best - 1e-6) << "program " << k;
        ++found;
        found_best += plan->added_ns() < *best + 1e-6 ? 1 : 0;
      }
      swap::Problem faster = iteration.problem;
      faster.machine = {20, 20, 0, 0};
      const Iteration other(std::move(faster));
      if (const auto swapped = other.plan(budget, true, 60).plan) {
        expect_holds(other, *swapped, budget);
        with_swaps += swapped->decisions.swaps.empty() ? 0 : 1;
      }
      ASSERT_FALSE(HasFailure()) << "program " << k << ", " << budget;
    }
  }
  std::printf("%d possible, a plan found in %d, the best in %d; with swaps %d\n", possible, found, found_best,
              with_swaps);
  EXPECT_GE(found_best, kSanitized ? possible / 2 : 12);
  EXPECT_GE(with_swaps, kSanitized ? 1 : 10);
}

TEST(Learned, GeneratedIterationsAreIterations) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Iteration iteration(generated_iteration(seed));
    EXPECT_EQ(iteration.problem, generated_iteration(seed));
    EXPECT_NE(iteration.problem.operations, generated_iteration(seed + 1).operations);
    const Cost cost = find_cost(iteration.problem, iteration.liveness, iteration.graph, {});
    EXPECT_EQ(cost.fault, std::nullopt);
    EXPECT_EQ(cost.peak, iteration.liveness.peak);
    EXPECT_GE(find_candidates(iteration.problem, iteration.liveness, iteration.graph, false, 1, 100).size(), 4u);
  }
}

// On generated iterations, and then asked about others, once.
TEST(Learned, WhatWasLearnedElsewhereIsOfUse) {
  const std::uint64_t episodes = kSanitized ? 150 : 600;
  for (const bool swaps : {false, true}) {
    const TransferredDqn transferred(swaps, {.episodes = episodes});
    EXPECT_EQ(transferred.episodes().size(), episodes);
    const TransferredDqn again(swaps, {.episodes = kSanitized ? 20u : 40u}),
        same(swaps, {.episodes = kSanitized ? 20u : 40u});
    int plans = 0, asked = 0;
    for (const int count : {9, 20, 40}) {
      const Iteration iteration(layers(count));
      for (const double part : {0.5, 0.7, 0.9}) {
        const std::uint64_t budget = iteration.part(part);
        const auto of = [&](const TransferredDqn& dqn) {
          return dqn.plan(iteration.problem, iteration.liveness, iteration.graph, budget).plan;
        };
        const auto plan = of(transferred), one = of(again), other = of(same);
        ++asked;
        EXPECT_EQ(one.has_value(), other.has_value());
        if (one && other) {
          EXPECT_EQ(one->steps, other->steps);
        }
        if (!plan) continue;
        ++plans;
        expect_holds(iteration, *plan, budget);
      }
    }
    std::printf("%s swaps: %d plans of %d; exam %.4f\n", swaps ? "with" : "without", plans, asked, transferred.exam());
    EXPECT_GT(plans, asked / 3);
  }
}

}  // namespace
}  // namespace memopt::recompute
