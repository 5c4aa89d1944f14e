#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "planner/recompute/combined/combine.h"
#include "planner/recompute/combined/extended.h"
#include "planner/recompute/combined/hidden_swaps.h"
#include "planner/recompute/search/search.h"
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

// An operation as "kind block@time".
std::vector<std::string> texts(const swap::Problem& problem) {
  constexpr const char* kKinds = "mfrwx";
  std::vector<std::string> all;
  for (const swap::Operation& one : problem.operations) {
    std::string text(1, kKinds[static_cast<std::size_t>(one.kind)]);
    if (one.block != swap::kNoBlock) text += " " + std::to_string(one.block);
    text += "@" + std::to_string(static_cast<int>(one.time));
    all.push_back(one.continues ? "+" + text : text);
  }
  return all;
}

TEST(Extended, WithoutStepsNothingChanges) {
  const Iteration iteration(layers(5));
  const Extended extended = extend(iteration.problem, iteration.graph, {});
  EXPECT_EQ(extended.problem, iteration.problem);
}

TEST(Extended, DropsAreFreesAndReplaysLaunches) {
  const testing::MadeAgainBesides made;
  const auto& [iteration, steps] = std::tie(made.iteration, made.steps);
  ASSERT_EQ(iteration.cost(steps)->fault, std::nullopt);
  const Extended extended = extend(iteration.problem, iteration.graph, steps);
  const std::vector<std::string> expected = {
      "m 1@0",  "m 2@0",  "m 3@0",   "r 0@0",   "+w 1@0",  "+w 2@0", "+w 3@0",
      "f 3@10", "r 2@10", "+w 2@10", "f 1@13",  "m 4@13",  "r 2@13", "+w 4@13",  // x leaves; z
      "m 5@15", "m 6@15", "r 0@15",  "+w 5@15", "+w 6@15", "+x@15",              // x again, and y besides
      "f 6@25", "r 5@25", "+r 2@25", "+w 4@25", "f 5@29",  "f 2@29", "f 4@29"};
  EXPECT_EQ(texts(extended.problem), expected);
  EXPECT_EQ(extended.problem.period, iteration.problem.period + 10);
  EXPECT_EQ(extended.block_of, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 1, 2}));
  EXPECT_FALSE(extended.is_besides(5));
  EXPECT_TRUE(extended.is_besides(6));
}

// A block's name in a file, and the life that is meant.
TEST(Extended, SwapsNameBlocksAndMeanLives) {
  const Iteration iteration(layers(4));
  // The first layer leaves in front of the third launch, and comes back in front of the last one, which reads it.
  const std::uint32_t third = iteration.graph.launches[2].first, last = iteration.graph.launches.back().first;
  const Steps steps = {{third, Kind::kDrop, 0}, {last - 1, Kind::kReplay, 0}};
  ASSERT_EQ(iteration.cost(steps)->fault, std::nullopt);
  const Extended extended = extend(iteration.problem, iteration.graph, steps);
  const auto life = static_cast<std::uint32_t>(extended.problem.blocks.size() - 1);
  std::uint64_t made = 0;
  while (extended.problem.operations[made].block != life) ++made;
  const std::vector<swap::Swap> lives = swaps_of_lives(extended, {{0, 1}, {0, made + 1}});
  ASSERT_EQ(lives.size(), 2u);
  EXPECT_EQ(lives[0].block, 0u);
  EXPECT_EQ(lives[1].block, life);
  EXPECT_EQ(swaps_of_blocks(extended, lives)[1].block, 0u);
  EXPECT_THROW(swaps_of_lives(extended, {{life, made + 1}}), swap::Invalid);  // no block of the file
  EXPECT_THROW(swaps_of_lives(extended, {{0, made - 1}}), swap::Invalid);     // between two lives
}

// What steps come to is what the iteration with them has, without looking at steps at all.
TEST(Extended, ItHasTheLoadAndTheTimeOfTheSteps) {
  std::mt19937_64 random(3);
  int replayed = 0;
  for (int k = 0; k < (kSanitized ? 60 : 300); ++k) {
    const Iteration iteration(random_program(random, 12));
    const std::uint64_t budget = iteration.liveness.peak * (60 + random() % 40) / 100;
    SearchLimits limits;
    limits.time = std::chrono::nanoseconds::max();
    limits.attempts = 3;
    const auto found = search(iteration.problem, iteration.liveness, iteration.graph, budget, limits);
    if (!found) continue;
    const Extended extended = extend(iteration.problem, iteration.graph, found->steps);
    const swap::Liveness liveness = swap::find_liveness(extended.problem);
    EXPECT_EQ(liveness.peak, found->cost.peak) << k;
    EXPECT_NEAR(extended.problem.period, iteration.problem.period + found->cost.added_ns, 1e-6) << k;
    replayed += found->cost.replays > 0 ? 1 : 0;
  }
  EXPECT_GT(replayed, kSanitized ? 3 : 20);
}

class Placing : public ::testing::Test {
 protected:
  // The swaps in the iteration with these steps, which has to hold within its peak load with them.
  swap::Decisions place(const Iteration& iteration, const HiddenSwaps& hidden, const Steps& steps,
                        std::span<const EarlyReturn> early = {}) {
    EXPECT_EQ(iteration.cost(steps)->fault, std::nullopt);
    extended_ = extend(iteration.problem, iteration.graph, steps);
    const swap::Liveness liveness = swap::find_liveness(extended_.problem);
    extended_.problem.limit = liveness.peak;
    swap::Decisions decisions = place_swaps(hidden, extended_, liveness, early, CopiesIn::kInTime);
    EXPECT_EQ(swap::verify(extended_.problem, decisions).fault, std::nullopt);
    return decisions;
  }

  Extended extended_;
};

// The program does not need it any more, but what is made of it has to be made again.
TEST_F(Placing, WhatAReplayNeedsReturnsForIt) {
  Program program;
  const auto a = program.allocate(50);
  program.launch(10, {a}, {a});  // can't be made: it is read first
  const auto x = program.make(100, 10, {a});
  const std::uint32_t behind = program.operations();
  for (int k = 0; k < 3; ++k) program.release(program.make(100, 100, {}));
  const std::uint32_t last = program.operations();
  program.launch(10, {x}, {});
  program.release(x);
  program.release(a);
  const Iteration iteration(program.problem());
  ASSERT_FALSE(iteration.graph.can_be_made(a));
  HiddenSwaps hidden;
  hidden.swaps = {{.block = a, .out_after = behind - 1}};
  hidden.absences = {{a, behind + 1, kNone}};
  const Steps steps = {{behind, Kind::kDrop, x}, {last, Kind::kReplay, 1}};
  // At the operation that reads it again.
  const swap::Decisions decisions = place(iteration, hidden, steps, std::vector<EarlyReturn>{{0, last, 1}});
  ASSERT_EQ(decisions.swaps.size(), 1u);
  const swap::Swap& one = decisions.swaps[0];
  ASSERT_TRUE(one.returns());
  EXPECT_EQ(extended_.problem.operations[one.need],
            (swap::Operation{.kind = swap::Kind::kRead, .block = a, .time = 320}));
  // Without a replay it stays away.
  const swap::Decisions without = place(iteration, hidden, {});
  ASSERT_EQ(without.swaps.size(), 1u);
  EXPECT_FALSE(without.swaps[0].returns());
}

// It has returned, and is dropped before anything needs it: it need not return then, but it is away before.
TEST_F(Placing, WhatIsDroppedBeforeItIsNeededStaysAway) {
  Program program;
  const auto x = program.make(100, 10, {});
  const std::uint32_t behind = program.operations();
  for (int k = 0; k < 3; ++k) program.release(program.make(100, 100, {}));
  const std::uint32_t back = program.operations();
  program.release(program.make(200, 100, {}));
  const std::uint32_t last = program.operations();
  program.launch(10, {x}, {});
  program.release(x);
  const Iteration iteration(program.problem());
  HiddenSwaps hidden;
  hidden.swaps = {{.block = x, .out_after = behind - 1, .in_after = back - 1, .need = last}};
  hidden.absences = {{x, behind + 1, back}};
  const Steps steps = {{back, Kind::kDrop, x}, {last, Kind::kReplay, 0}};
  const swap::Decisions decisions = place(iteration, hidden, steps);
  ASSERT_EQ(decisions.swaps.size(), 1u);
  EXPECT_EQ(decisions.swaps[0].block, x);
  EXPECT_FALSE(decisions.swaps[0].returns());
}

// Behind its last use, of what can't be made again: it need not return.
TEST_F(Placing, WhatLiesUnusedUntilItIsFreedLeaves) {
  Program program;
  const auto a = program.allocate(1000);
  program.launch(100, {a}, {a});
  for (int k = 0; k < 20; ++k) program.release(program.make(100, 100, {}));
  program.release(program.make(1000, 100, {}));
  program.release(a);
  const Iteration iteration(program.problem());
  swap::SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = 100;
  limits.in_step = true;
  const HiddenSwaps hidden = find_hidden_swaps(iteration.problem, iteration.liveness, iteration.graph, 0, 100, limits);
  ASSERT_EQ(hidden.swaps.size(), 1u);
  EXPECT_EQ(hidden.swaps[0].block, a);
  EXPECT_FALSE(hidden.swaps[0].returns());
}

class Combining : public ::testing::Test {
 protected:
  static std::optional<Combined> plan(const Iteration& iteration, std::uint64_t budget, Means means) {
    SearchLimits limits;
    limits.time = std::chrono::nanoseconds::max();
    limits.attempts = kSanitized ? 100 : 400;
    auto found = combine(iteration.problem, iteration.liveness, iteration.graph, budget, means, limits);
    if (found) check(iteration, budget, *found);
    return found;
  }

  static void check(const Iteration& iteration, std::uint64_t budget, const Combined& found) {
    EXPECT_EQ(iteration.cost(found.steps)->fault, std::nullopt);
    Extended extended = extend(iteration.problem, iteration.graph, found.steps);
    extended.problem.limit = budget;
    const auto swaps = swaps_of_lives(extended, swaps_of_blocks(extended, found.decisions.swaps));
    EXPECT_EQ(swaps, found.decisions.swaps);
    const swap::Report report = swap::verify(extended.problem, {swaps, {}});
    EXPECT_EQ(report.fault, std::nullopt);
    EXPECT_NEAR(report.timing.added_ns, found.waits_ns, 1e-6);
    EXPECT_LE(found.load, budget);
    // It holds within what it says that it takes, and takes no longer.
    extended.problem.limit = found.load;
    const swap::Report within = swap::verify(extended.problem, {swaps, {}});
    EXPECT_EQ(within.fault, std::nullopt);
    EXPECT_LE(within.timing.added_ns, found.waits_ns + 1e-6);
  }

  // Layers of 100 bytes and 10 ns each, as in layers(); copies at so many bytes a nanosecond.
  static Iteration with_copies(double rate) {
    swap::Problem problem = layers(40);
    problem.machine = {rate, rate, 0, 0};
    return Iteration(std::move(problem));
  }
};

TEST_F(Combining, WhereThereIsRoomNothingIsDone) {
  const auto found = plan(with_copies(1), 4200, Means::kBoth);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->steps.empty());
  EXPECT_TRUE(found->decisions.swaps.empty());
  EXPECT_EQ(found->added_ns(), 0);
}

TEST_F(Combining, FastCopiesHideAndNothingIsComputedAgain) {
  const auto found = plan(with_copies(100), 2200, Means::kBoth);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->steps.empty());
  EXPECT_FALSE(found->decisions.swaps.empty());
  EXPECT_EQ(found->added_ns(), 0);
}

TEST_F(Combining, SlowCopiesAreNotWaitedFor) {
  const Iteration iteration = with_copies(0.01);
  const auto both = plan(iteration, 2200, Means::kBoth);
  ASSERT_TRUE(both);
  EXPECT_FALSE(both->steps.empty());
  const auto swaps = plan(iteration, 2200, Means::kSwaps);
  EXPECT_TRUE(!swaps || swaps->added_ns() > 10 * both->added_ns());
}

// Copies hide behind the computation, but not all that has to leave: the rest is made again.
TEST_F(Combining, TogetherTheyAreBetterThanEither) {
  const Iteration iteration = with_copies(2);
  const std::uint64_t budget = 1400;
  const auto both = plan(iteration, budget, Means::kBoth);
  const auto swaps = plan(iteration, budget, Means::kSwaps);
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = kSanitized ? 100 : 400;
  const auto replays = search(iteration.problem, iteration.liveness, iteration.graph, budget, limits);
  ASSERT_TRUE(both && swaps && replays);
  EXPECT_FALSE(both->steps.empty());
  EXPECT_FALSE(both->decisions.swaps.empty());
  EXPECT_LT(both->added_ns(), 0.8 * swaps->added_ns());
  EXPECT_LT(both->added_ns(), 0.8 * replays->cost.added_ns);
}

// Several outputs, changes in place, blocks that persist: whatever is swapped and computed again, it holds, and is no
// slower than without swaps.
TEST_F(Combining, PlansOfRandomProgramsHold) {
  std::mt19937_64 random(5);
  int both = 0, possible = 0;
  for (int k = 0; k < (kSanitized ? 25 : 100); ++k) {
    swap::Problem problem = random_program(random, 15);
    const double rate = 0.5 * static_cast<double>(1 + random() % 12);
    problem.machine = {rate, rate, 0, 0};
    const Iteration iteration(std::move(problem));
    const std::uint64_t budget = iteration.liveness.peak * (55 + random() % 40) / 100;
    SearchLimits limits;
    limits.time = std::chrono::nanoseconds::max();
    limits.attempts = 30;
    limits.threads = 2;
    const auto found = combine(iteration.problem, iteration.liveness, iteration.graph, budget, Means::kBoth, limits);
    const auto replays = search(iteration.problem, iteration.liveness, iteration.graph, budget, limits);
    EXPECT_TRUE(found || !replays) << k;
    if (!found) continue;
    ++possible;
    check(iteration, budget, *found);
    if (replays) {
      EXPECT_LE(found->added_ns(), replays->cost.added_ns + 1e-6) << k;
    }
    both += !found->steps.empty() && !found->decisions.swaps.empty() ? 1 : 0;
  }
  EXPECT_GT(possible, kSanitized ? 10 : 50);
  EXPECT_GT(both, kSanitized ? 0 : 5);
}

TEST_F(Combining, TheSameSeedGivesTheSamePlan) {
  const Iteration iteration = with_copies(2);
  const auto one = plan(iteration, 1400, Means::kBoth), other = plan(iteration, 1400, Means::kBoth);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->steps, other->steps);
  EXPECT_EQ(one->decisions, other->decisions);
}

}  // namespace
}  // namespace memopt::recompute
