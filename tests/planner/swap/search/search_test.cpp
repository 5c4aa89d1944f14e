// Our own search for swaps and places, held against everything that can be tried, and against itself.
#include "planner/swap/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "planner/swap/evaluation/evaluator.h"
#include "planner/swap/model/load.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/swap/busy_problem.h"
#include "tests/planner/swap/exhaustive/exhaustive.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"
#include "tests/planner/swap/layers.h"
#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

using layout::kSanitized;
using testing::allow_clean_drops;
using testing::busy_problem;
using testing::exhaustive;
using testing::Optimum;
using testing::problems_wanted;
using testing::TinyProblems;

constexpr double kTolerance = 1e-3;

// So that results repeat.
SearchLimits attempts(std::uint64_t count) {
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = count;
  return limits;
}

TEST(Search, ABlockMakesRoomForAnother) {
  testing::Plan plan = testing::two_blocks();
  const SearchPlan found = search(plan.problem, find_liveness(plan.problem), Objective::kFootprint, attempts(500));
  EXPECT_TRUE(found.feasible);
  EXPECT_EQ(found.footprint, 100U);
  EXPECT_EQ(found.added_ns, 0);
  ASSERT_EQ(found.decisions.swaps.size(), 1U);
  EXPECT_EQ(found.decisions.swaps[0].block, 0U);
}

TEST(Search, WaitsWhereTheLimitLeavesNoOtherWay) {
  testing::Plan plan = testing::two_blocks();
  plan.problem.machine = {4, 10, 0, 0};  // 25 ns out of 20 to 30
  plan.problem.limit = 100;
  const SearchPlan found = search(plan.problem, find_liveness(plan.problem), Objective::kTime, attempts(4000));
  EXPECT_TRUE(found.feasible);
  EXPECT_EQ(found.footprint, 100U);
  EXPECT_NEAR(found.added_ns, 15, kTolerance);
}

TEST(Search, WhatIsPinnedStays) {
  testing::Plan plan = testing::two_blocks();
  plan.problem.blocks[0].pinned = true;
  const SearchPlan found = search(plan.problem, find_liveness(plan.problem), Objective::kFootprint, attempts(500));
  EXPECT_EQ(found.footprint, 200U);
  EXPECT_TRUE(found.decisions.swaps.empty());
}

TEST(Search, ALimitOutOfReachIsSaidAndTheSmallestPlanGiven) {
  testing::Plan plan = testing::two_blocks();
  plan.problem.limit = 99;
  const SearchPlan found = search(plan.problem, find_liveness(plan.problem), Objective::kTime, attempts(500));
  EXPECT_FALSE(found.feasible);
  EXPECT_EQ(found.footprint, 100U);
}

// It may be away from anywhere on, but only once.
TEST(Search, ABlockWithoutAccessesIsAwayOnce) {
  Problem problem;
  problem.blocks = {{.id = 0, .bytes = 100, .persistent = true}, {.id = 1, .bytes = 60}, {.id = 2, .bytes = 60}};
  using enum Kind;
  problem.operations = {{kNothing, kNoBlock, 0},   {kMalloc, 1, 20},         {kWrite, 1, 30}, {kFree, 1, 40},
                        {kMalloc, 2, 60},          {kWrite, 2, 70},          {kFree, 2, 80},  {kNothing, kNoBlock, 90},
                        {kNothing, kNoBlock, 100}, {kNothing, kNoBlock, 110}};
  problem.period = 130;
  problem.machine = {10, 10, 0, 0};
  problem.chunk = 1;
  const Liveness liveness = find_liveness(problem);
  const SearchPlan plan = search(problem, liveness, Objective::kFootprint, attempts(2000));
  EXPECT_EQ(plan.footprint, 100U);
  EXPECT_EQ(plan.decisions.swaps.size(), 1U);
  EXPECT_EQ(verify(problem, plan.decisions).fault, std::nullopt);

  // The second copy out ends behind the begin of the first copy in: times alone would allow it.
  problem.machine = {2, 2, 0, 0};
  EvictionCandidates candidates = find_eviction_candidates(problem, liveness);
  ASSERT_GT(candidates.evictions.size(), 3U);
  Evaluator evaluator(problem, liveness, candidates);
  Choice choice;
  choice.evicted.assign(candidates.evictions.size(), 0);
  for (const Eviction& eviction : candidates.evictions) choice.out_after.push_back(eviction.leaves);
  choice.order = {0, 1, 2};
  for (std::size_t a = 0; a < candidates.evictions.size(); ++a) {
    const std::uint64_t leaves = candidates.evictions[a].leaves;
    choice.evicted[a] = leaves == 0 || leaves == 3;
  }
  ASSERT_EQ(std::accumulate(choice.evicted.begin(), choice.evicted.end(), 0), 2);
  EXPECT_EQ(evaluator.attempt(choice, Evaluator::kInfinite), Evaluator::kInfinite);
}

TEST(Search, NoBlocksNoSwaps) {
  Problem problem;
  problem.operations = {{Kind::kNothing, kNoBlock, 0}};
  problem.period = 10;
  problem.machine = {1, 1, 0, 0};
  const SearchPlan found = search(problem, find_liveness(problem), Objective::kFootprint, attempts(10));
  EXPECT_TRUE(found.feasible);
  EXPECT_EQ(found.footprint, 0U);
}

TEST(Search, EndsWhereThereIsNothingToTry) {
  Problem problem;
  problem.blocks = {{.id = 0, .bytes = 100, .persistent = true, .pinned = true}};
  problem.operations = {{Kind::kNothing, kNoBlock, 0}};
  problem.period = 10;
  problem.machine = {1, 1, 0, 0};
  for (const Objective objective : {Objective::kFootprint, Objective::kTime}) {
    problem.limit = 50;
    const SearchPlan found = search(problem, find_liveness(problem), objective, attempts(100));
    EXPECT_FALSE(found.feasible);
    EXPECT_EQ(found.footprint, 100U);
  }
}

// With an hour to go on.
TEST(Search, EndsWhenItIsCancelled) {
  std::atomic<bool> cancelled{true};
  SearchLimits limits;
  limits.time = std::chrono::hours(1);
  limits.threads = 2;
  limits.cancelled = &cancelled;
  Problem problem = busy_problem(1);
  const Liveness liveness = find_liveness(problem);
  EXPECT_EQ(search(problem, liveness, Objective::kFootprint, limits).attempts, 0U);
  for (const Objective objective : {Objective::kFootprint, Objective::kTime}) {
    if (objective == Objective::kTime) problem.limit = liveness.peak / 2;
    cancelled = false;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      cancelled = true;
    });
    const SearchPlan plan = search(problem, liveness, objective, limits);
    other.join();
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(plan.decisions.places.size(), problem.blocks.size());
    EXPECT_EQ(verify(problem, plan.decisions).fault.has_value(), !plan.feasible);
  }
}

TEST(Search, IsTheSameForASeedAndNumberOfThreads) {
  TinyProblems problems(11);
  for (int k = 0; k < 10; ++k) {
    const Problem problem = problems.next(true, 3000);
    const Liveness liveness = find_liveness(problem);
    SearchLimits limits = attempts(300);
    limits.threads = 2;
    const SearchPlan one = search(problem, liveness, Objective::kFootprint, limits);
    const SearchPlan other = search(problem, liveness, Objective::kFootprint, limits);
    EXPECT_EQ(one.decisions, other.decisions) << k;
    EXPECT_EQ(one.attempts, other.attempts) << k;
  }
}

struct Tally {
  int smallest_equal = 0, swapped = 0, dropped = 0, timed = 0, feasible = 0, timed_equal = 0;
};

bool drops(const Decisions& decisions) {
  return std::any_of(decisions.swaps.begin(), decisions.swaps.end(), [](const Swap& swap) { return !swap.copy; });
}

// Never better than the best plan there is; how often as good.
Tally held_against_everything(TinyProblems& problems, int count, bool clean_drops) {
  Tally tally;
  for (int k = 0; k < count; ++k) {
    Problem problem = problems.next(true, clean_drops ? 500 : 3000);
    problem.clean_drops = clean_drops;
    const Liveness liveness = find_liveness(problem);
    const Optimum best = exhaustive(problem);
    EXPECT_FALSE(best.plans.empty());
    if (best.plans.empty()) break;
    problem.limit.reset();
    const SearchPlan smallest = search(problem, liveness, Objective::kFootprint, attempts(2000));
    EXPECT_TRUE(smallest.feasible) << k;
    const Report report = verify(problem, smallest.decisions);
    EXPECT_EQ(report.fault, std::nullopt) << k;
    if (report.fault) break;
    EXPECT_EQ(report.footprint, smallest.footprint) << k;
    EXPECT_NEAR(report.timing.added_ns, smallest.added_ns, kTolerance) << k;
    const auto* const least = best.least_footprint(kUnnoticed * problem.period);
    EXPECT_NE(least, nullptr);
    if (least == nullptr) break;
    EXPECT_GE(smallest.footprint, least->footprint) << k;
    tally.smallest_equal += smallest.footprint == least->footprint;
    tally.swapped += !smallest.decisions.swaps.empty();
    for (const auto& optimal : best.plans) {
      problem.limit = optimal.footprint;
      const SearchPlan fast = search(problem, liveness, Objective::kTime, attempts(3000));
      ++tally.timed;
      if (!fast.feasible) {
        EXPECT_GT(fast.footprint, optimal.footprint);
        continue;
      }
      ++tally.feasible;
      const Report judged = verify(problem, fast.decisions);
      EXPECT_EQ(judged.fault, std::nullopt) << k;
      EXPECT_GE(judged.timing.added_ns, optimal.added_ns - kTolerance) << k;
      EXPECT_NEAR(judged.timing.added_ns, fast.added_ns, kTolerance) << k;
      tally.timed_equal += judged.timing.added_ns <= optimal.added_ns + kTolerance;
      tally.dropped += drops(fast.decisions);
    }
  }
  ::testing::Test::RecordProperty("smallest_equal", tally.smallest_equal);
  ::testing::Test::RecordProperty("timed", tally.timed);
  ::testing::Test::RecordProperty("feasible", tally.feasible);
  ::testing::Test::RecordProperty("timed_equal", tally.timed_equal);
  return tally;
}

TEST(Search, IsHeldAgainstEverythingThatCanBeTried) {
  TinyProblems problems(12);
  const int count = problems_wanted(60);
  const Tally tally = held_against_everything(problems, count, false);
  EXPECT_GT(tally.swapped, count / 20);
  EXPECT_EQ(tally.dropped, 0);
  EXPECT_GT(tally.smallest_equal, count * 8 / 10);
  EXPECT_GT(tally.feasible, tally.timed * 6 / 10);
  EXPECT_GT(tally.timed_equal, tally.timed * 4 / 10);
}

TEST(Search, WithCleanDropsItIsHeldAgainstEverythingToo) {
  TinyProblems problems(14);
  const int count = problems_wanted(60);
  const Tally tally = held_against_everything(problems, count, true);
  EXPECT_GE(tally.dropped, kSanitized ? 0 : count / 20 + 1);  // rare: the first eight have none
  EXPECT_GT(tally.smallest_equal, count * 8 / 10);
  EXPECT_GT(tally.feasible, tally.timed * 6 / 10);
  EXPECT_GT(tally.timed_equal, tally.timed * 4 / 10);
}

// A weight is read forwards and backwards and then written; two others need its place in between.
Problem read_twice() {
  Problem problem;
  problem.blocks = {{.id = 0, .bytes = 100, .persistent = true}, {.id = 1, .bytes = 100}, {.id = 2, .bytes = 100}};
  using enum Kind;
  problem.operations = {{kWrite, 0, 0},  {kRead, 0, 10},           {kNothing, kNoBlock, 20}, {kMalloc, 1, 40},
                        {kFree, 1, 50},  {kNothing, kNoBlock, 60}, {kRead, 0, 80},           {kMalloc, 2, 90},
                        {kFree, 2, 100}, {kNothing, kNoBlock, 110}};
  problem.period = 130;
  problem.machine = {5, 10, 0, 0};  // 20 ns out, 10 in
  problem.chunk = 1;
  return problem;
}

TEST(Search, WhatWasOnlyReadSinceItsCopyIsDropped) {
  Problem problem = read_twice();
  const Liveness liveness = find_liveness(problem);
  const SearchPlan copied = search(problem, liveness, Objective::kFootprint, attempts(500));
  EXPECT_EQ(copied.footprint, 200U);  // there is no time for a copy out before block 2
  EXPECT_FALSE(drops(copied.decisions));
  problem.clean_drops = true;
  const SearchPlan dropped = search(problem, liveness, Objective::kFootprint, attempts(500));
  EXPECT_EQ(dropped.footprint, 100U);
  EXPECT_EQ(dropped.added_ns, 0);
  ASSERT_EQ(dropped.decisions.swaps.size(), 2U);
  const Report report = verify(problem, dropped.decisions);
  EXPECT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.bytes_out, 100U);
  EXPECT_EQ(report.bytes_dropped, 100U);
  EXPECT_EQ(report.bytes_in, 200U);
  // Written backwards, too, it has to be copied again.
  problem.operations[6].kind = Kind::kWrite;
  EXPECT_EQ(search(problem, find_liveness(problem), Objective::kFootprint, attempts(500)).footprint, 200U);
}

// Of what is never written, one eviction has to copy: in a circle all others could say that one did.
TEST(Search, WhatIsNeverWrittenIsCopiedOnce) {
  Problem problem = read_twice();
  problem.operations[0].kind = Kind::kRead;
  problem.clean_drops = true;
  const SearchPlan plan = search(problem, find_liveness(problem), Objective::kFootprint, attempts(500));
  EXPECT_EQ(plan.footprint, 100U);
  const Report report = verify(problem, plan.decisions);
  EXPECT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.bytes_out, 100U);
  EXPECT_GE(report.bytes_dropped, 100U);
}

TEST(Search, IsHeldAgainstEverythingThatCanBeTriedWithoutLayout) {
  TinyProblems problems(13);
  int plans = 0, equal = 0;
  for (int k = 0; k < problems_wanted(40); ++k) {
    Problem problem = problems.next(false, 300);
    const Liveness liveness = find_liveness(problem);
    for (std::uint64_t percent = 40; percent <= 100; percent += 20) {
      problem.limit = liveness.peak * percent / 100;
      const Optimum best = exhaustive(problem);
      const SearchPlan plan = search(problem, liveness, Objective::kTime, attempts(1500));
      if (!plan.feasible) continue;
      const Report report = verify(problem, plan.decisions);
      ASSERT_EQ(report.fault, std::nullopt) << k << ' ' << percent;
      ASSERT_FALSE(best.plans.empty()) << k;
      EXPECT_GE(report.timing.added_ns, best.plans[0].added_ns - kTolerance) << k << ' ' << percent;
      ++plans;
      equal += report.timing.added_ns <= best.plans[0].added_ns + kTolerance;
    }
  }
  EXPECT_GT(plans, problems_wanted(40));
  EXPECT_GT(equal, plans / 2);
}

// There are too many evictions to begin with none, and too few attempts to find many.
TEST(Search, SwapsInLongIterationsAtOnce) {
  const Problem problem = testing::layers(600, 1 << 20);
  const Liveness liveness = find_liveness(problem);
  const SearchPlan found = search(problem, liveness, Objective::kFootprint, attempts(5));
  EXPECT_GT(found.candidates, 400U);
  const Report report = verify(problem, found.decisions);
  ASSERT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.footprint, found.footprint);
  EXPECT_NEAR(report.timing.added_ns, 0, kTolerance);
  EXPECT_LT(static_cast<double>(found.footprint), 0.97 * static_cast<double>(liveness.peak));
  Problem limited = problem;
  limited.limit = found.footprint + found.footprint / 50;
  const SearchPlan same = search(limited, liveness, Objective::kTime, attempts(5));
  EXPECT_TRUE(same.feasible);
  EXPECT_EQ(same.added_ns, 0);
}

// Nothing is tried but what comes first, or the time is over somewhere between.
TEST(Search, WithoutTimeThereIsAPlanAllTheSame) {
  for (const bool layout : {true, false}) {
    for (Problem problem : {testing::two_blocks().problem, testing::layers(300, 1 << 20)}) {
      problem.layout = layout;
      problem.limit = 0;
      const Liveness liveness = find_liveness(problem);
      for (const int time : {0, 1, 90, 170}) {
        for (const Objective objective : {Objective::kFootprint, Objective::kTime}) {
          problem.limit = objective == Objective::kTime ? liveness.peak / 2 : 2 * liveness.peak;
          SearchLimits limits;
          limits.time = std::chrono::milliseconds(time);
          limits.threads = 2;
          const SearchPlan found = search(problem, liveness, objective, limits);
          Problem judged = problem;
          judged.limit = std::max(*problem.limit, found.footprint);
          EXPECT_EQ(verify(judged, found.decisions).fault, std::nullopt);
          EXPECT_GT(found.footprint, 0U) << layout << " " << problem.blocks.size() << " " << time;
        }
      }
    }
  }
}

// A covering is all that may find a plan, and takes as long as it takes; or it is given up.
TEST(Search, CoversLateOrNotAtAll) {
  Problem problem = testing::layers(60, 1 << 20);
  problem.layout = false;  // which would take time, too
  problem.limit = 1;
  const Liveness liveness = find_liveness(problem);
  problem.limit = liveness.peak / 3;
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds(1);
  for (const bool in_time : {false, true}) {
    limits.in_time = in_time;
    const SearchPlan found = search(problem, liveness, Objective::kTime, limits);
    EXPECT_EQ(found.feasible, !in_time);
    problem.limit = std::max(*problem.limit, found.footprint);
    EXPECT_EQ(verify(problem, found.decisions).fault, std::nullopt);
    problem.limit = liveness.peak / 3;
  }
}

// With slow copies: loads may be above what leaves room for places, and a layout within the limit all the same.
TEST(Search, EndsWithAPlanForAnyLimit) {
  Problem problem = testing::layers(12, 1 << 20);
  problem.machine.out_bytes_per_ns *= 0.3;
  problem.machine.in_bytes_per_ns *= 0.3;
  const Liveness liveness = find_liveness(problem);
  int swapped = 0, feasible = 0;
  for (std::uint64_t part = 110; part <= 206; part += kSanitized ? 12 : 2) {
    Problem limited = problem;
    limited.limit = liveness.peak * part / 200;
    const SearchPlan found = search(limited, liveness, Objective::kTime, attempts(1000));
    limited.limit = std::max(*limited.limit, found.footprint);
    const Report report = verify(limited, found.decisions);
    ASSERT_EQ(report.fault, std::nullopt) << part;
    EXPECT_EQ(report.footprint, found.footprint) << part;
    swapped += !found.decisions.swaps.empty();
    feasible += found.feasible;
  }
  EXPECT_GT(swapped, kSanitized ? 2 : 10);
  EXPECT_GT(feasible, kSanitized ? 2 : 10);
}

// Copies take long, so that all that fits is bought with time.
std::vector<Problem> slow_problems() {
  std::vector<Problem> problems = {testing::shrinking_layers(true), testing::layers(14, 1 << 20), busy_problem(3)};
  for (Problem& problem : problems) {
    problem.machine.out_bytes_per_ns *= 0.3;
    problem.machine.in_bytes_per_ns *= 0.3;
  }
  if (kSanitized) problems.resize(1);
  return problems;
}

// Not by construction: this is what searches come to.
TEST(Search, MoreRoomIsNeverMuchSlowerAndALimitAboveOneThatHoldsHolds) {
  std::uint64_t k = 0;
  for (Problem& problem : slow_problems()) {
    const Liveness liveness = find_liveness(problem);
    bool held = false;
    double least = std::numeric_limits<double>::infinity();  // at the limits below
    int plans = 0;
    for (std::uint64_t part = 10; part <= 100; part += kSanitized ? 30 : 15) {
      problem.limit = liveness.peak * part / 100;
      const SearchPlan found = search(problem, liveness, Objective::kTime, attempts(kSanitized ? 200 : 500));
      EXPECT_TRUE(found.feasible || !held)
          << k << ", " << part << " %: " << found.footprint << " of " << *problem.limit;
      if (!found.feasible) continue;
      held = true;
      ++plans;
      EXPECT_LE(found.added_ns, 1.05 * least + 0.02 * problem.period) << k << ", " << part << " %";
      least = std::min(least, found.added_ns);
      const Report report = verify(problem, found.decisions);
      EXPECT_EQ(report.fault, std::nullopt) << k << ", " << part << " %";
      EXPECT_LE(report.footprint.value_or(0), *problem.limit) << k << ", " << part << " %";
    }
    EXPECT_GE(plans, kSanitized ? 2 : 5) << k;
    EXPECT_EQ(least, 0) << k;
    ++k;
  }
}

// Whatever was asked for: it is looked for, and holds.
TEST(Search, WhereNothingFitsTheLeastLimitThatIsNamedHasAPlan) {
  for (Problem& problem : slow_problems()) {
    const Liveness liveness = find_liveness(problem);
    std::vector<std::uint64_t> named;
    for (const std::uint64_t part : kSanitized ? std::vector<std::uint64_t>{6} : std::vector<std::uint64_t>{1, 10}) {
      problem.limit = std::min(liveness.peak * part / 100, least_load(problem, liveness) - 1);
      const SearchPlan found = search(problem, liveness, Objective::kTime, attempts(300));
      ASSERT_FALSE(found.feasible) << part;
      named.push_back(found.footprint);
      problem.limit = found.footprint;
      EXPECT_EQ(verify(problem, found.decisions).fault, std::nullopt) << part;
      EXPECT_TRUE(search(problem, liveness, Objective::kTime, attempts(300)).feasible) << part;
    }
    const auto [least, most] = std::minmax_element(named.begin(), named.end());
    EXPECT_LE(*most, *least + *least / 20);
    EXPECT_LE(*most, 3 * least_load(problem, liveness) / 2);
  }
}

// Where one eviction is of no use without many others, as each step has the same peak.
TEST(Search, AnEpochHasAPlanWhereItsStepHasOne) {
  const Problem step = testing::layers(30, 1 << 20);
  Problem problem = testing::repeated(step, 6);
  problem.machine.out_bytes_per_ns *= 0.5;
  problem.machine.in_bytes_per_ns *= 0.5;
  const Liveness liveness = find_liveness(problem);
  for (const std::uint64_t part : {80, 65, 50}) {
    problem.limit = liveness.peak * part / 100;
    const SearchPlan found = search(problem, liveness, Objective::kTime, attempts(400));
    EXPECT_TRUE(found.feasible) << part << ": " << found.footprint << " of " << *problem.limit;
    const Report report = verify(problem, found.decisions);
    EXPECT_EQ(report.fault, std::nullopt) << part;
    EXPECT_LE(report.footprint.value_or(0), *problem.limit) << part;
    EXPECT_GT(found.candidates, 400U) << "else this is no long iteration";
  }
}

// What is below the limit by its load, and above it once it is laid out, is made smaller before places are searched
// for. From far above, that search ends above the limit, and what is left is a covering, which adds 0.44 of the
// iteration.
TEST(Search, ALoadThatIsLaidOutAboveTheLimitIsMadeSmallerFirst) {
  Problem problem = testing::repeated(testing::shrinking_layers(true), 5);
  for (Block& block : problem.blocks) block.whole_chunks = block.whole_chunks && block.bytes != 0;
  const Liveness liveness = find_liveness(problem);
  problem.limit = liveness.peak * 7 / 10;
  SearchLimits limits = attempts(kSanitized ? 300 : 3000);
  limits.seed = 4;
  const SearchPlan plan = search(problem, liveness, Objective::kTime, limits);
  ASSERT_TRUE(plan.feasible);
  const Report report = verify(problem, plan.decisions);
  EXPECT_EQ(report.fault, std::nullopt);
  EXPECT_LE(report.footprint.value_or(0), *problem.limit);
  if (!kSanitized) {
    EXPECT_LT(plan.added_ns, 0.25 * problem.period);
  }
}

// Whatever it does at that moment. With few evictions, a search that was cancelled while a covering was improved did
// not end at all.
TEST(Search, EndsWheneverItIsCancelled) {
  Problem problem = testing::layers(40, 1 << 20);
  const Liveness liveness = find_liveness(problem);
  for (const std::uint64_t part : {50, 40, 30}) {
    problem.limit = liveness.peak * part / 100;
    // At other moments for each limit.
    for (int ms = 15 + static_cast<int>(part) % 30; ms < 400; ms += kSanitized ? 120 : 30) {
      std::atomic<bool> cancelled{false};
      SearchLimits limits;
      limits.time = std::chrono::milliseconds(400);
      limits.cancelled = &cancelled;
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        cancelled = true;
      });
      const SearchPlan plan = search(problem, liveness, Objective::kTime, limits);
      other.join();
      EXPECT_EQ(verify(problem, plan.decisions).fault.has_value(), !plan.feasible) << part << " " << ms;
    }
  }
}

// Blocks that take no part in the search need room, too: persistent ones lie above all others. Found out late, places
// were searched for in vain, and what was left added twice as much: 0.12 to 0.28 of the iteration, half of the time
// above 0.22.
TEST(Search, WhatTakesNoPartHasRoomFromTheBeginning) {
  Problem problem = testing::layers(40, 1 << 20);
  std::mt19937_64 random(3);
  for (Block& block : problem.blocks) block.bytes = (block.bytes * (50 + random() % 100) / 100 + 511) / 512 * 512;
  const std::uint64_t part = find_liveness(problem).peak / 2000 / 512 * 512;
  for (std::uint64_t i = 0; i < 8; ++i) {
    problem.blocks.push_back({.id = 1000 + i, .bytes = part, .persistent = true, .pinned = true});
  }
  const Liveness liveness = find_liveness(problem);
  problem.limit = liveness.peak / 2;
  std::vector<double> added;
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 1 : 11); ++seed) {
    SearchLimits limits = attempts(kSanitized ? 300 : 2000);
    limits.seed = seed;
    const SearchPlan plan = search(problem, liveness, Objective::kTime, limits);
    ASSERT_TRUE(plan.feasible) << seed;
    const Report report = verify(problem, plan.decisions);
    ASSERT_EQ(report.fault, std::nullopt) << seed;
    EXPECT_LE(report.footprint.value_or(0), *problem.limit) << seed;
    added.push_back(plan.added_ns / problem.period);
  }
  if (kSanitized) return;
  std::nth_element(added.begin(), added.begin() + 5, added.end());
  EXPECT_LT(added[5], 0.15);
}

TEST(Search, PlansOfBusyIterationsHold) {
  std::uint64_t footprints = 0, peaks = 0;
  for (std::uint64_t seed = kSanitized ? 7 : 1; seed <= 8; seed += 2) {
    Problem problem = busy_problem(seed);
    if (seed > 6) allow_clean_drops(problem);
    const Liveness liveness = find_liveness(problem);
    const SearchPlan plan = search(problem, liveness, Objective::kFootprint, attempts(6000));
    ASSERT_TRUE(plan.feasible);
    const Report report = verify(problem, plan.decisions);
    ASSERT_EQ(report.fault, std::nullopt) << seed;
    EXPECT_EQ(report.timing.added_ns, 0) << seed;
    EXPECT_GT(plan.decisions.swaps.size(), 5U);
    EXPECT_EQ(drops(plan.decisions), problem.clean_drops) << seed;
    footprints += plan.footprint;
    peaks += liveness.peak;
    problem.limit = plan.footprint * 9 / 10;
    const SearchPlan small = search(problem, liveness, Objective::kTime, attempts(6000));
    if (!small.feasible) continue;
    const Report timed = verify(problem, small.decisions);
    ASSERT_EQ(timed.fault, std::nullopt) << seed;
    EXPECT_NEAR(timed.timing.added_ns, small.added_ns, kTolerance);
  }
  EXPECT_LT(footprints, peaks * 95 / 100);
}

}  // namespace
}  // namespace memopt::swap
