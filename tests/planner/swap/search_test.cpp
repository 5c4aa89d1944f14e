// Our own search for swaps and places, held against everything that can be tried, and against itself.
#include "planner/swap/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>

#include "exhaustive.h"
#include "layers.h"
#include "planner/swap/search/fitting.h"
#include "planner/swap/search/greedy.h"
#include "planner/swap/verify.h"
#include "small_plans.h"
#include "tiny_problems.h"

namespace memopt::swap {
namespace {

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

// Blocks of many sizes and lives, some of which persist or outlive the iteration.
Problem busy_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto fraction = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Problem problem;
  constexpr std::uint32_t kBlocks = 90;
  struct Event {
    double time;
    Kind kind;
    std::uint32_t block, age;
  };
  std::vector<Event> events;
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    const bool persistent = b % 6 == 0;
    problem.blocks.push_back({.id = b, .bytes = (1 + random() % 64) * 1024 + random() % 700});
    problem.blocks.back().persistent = persistent;
    const double born = std::floor(fraction() * 1000);
    const double length = b % 7 == 0 ? 600 + std::floor(fraction() * 900) : std::floor(fraction() * 500);
    const auto put = [&](double time, Kind kind) {
      events.push_back({std::fmod(time, 1000), kind, b, persistent ? 0U : static_cast<std::uint32_t>(time / 1000)});
    };
    if (!persistent) put(born, Kind::kMalloc);
    for (double at = 1; at < 4; ++at)
      put(persistent ? std::floor(fraction() * 1000) : born + at * length / 4, Kind::kWrite);
    if (!persistent) put(born + length, Kind::kFree);
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  problem.operations.push_back({Kind::kNothing, kNoBlock, 0});
  for (const Event& event : events) problem.operations.push_back({event.kind, event.block, event.time, event.age});
  problem.period = 1000;
  problem.machine = {2000, 1800, 1, 1};
  problem.chunk = 4096;
  problem.align = 512;
  return problem;
}

TEST(Search, ABlockMakesRoomForAnother) {
  testing::Plan plan = testing::two_blocks();
  const SearchPlan found = search(plan.problem, find_lives(plan.problem), Objective::kFootprint, attempts(500));
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
  const SearchPlan found = search(plan.problem, find_lives(plan.problem), Objective::kTime, attempts(4000));
  EXPECT_TRUE(found.feasible);
  EXPECT_EQ(found.footprint, 100U);
  EXPECT_NEAR(found.added_ns, 15, kTolerance);
}

TEST(Search, WhatIsPinnedStays) {
  testing::Plan plan = testing::two_blocks();
  plan.problem.blocks[0].pinned = true;
  const SearchPlan found = search(plan.problem, find_lives(plan.problem), Objective::kFootprint, attempts(500));
  EXPECT_EQ(found.footprint, 200U);
  EXPECT_TRUE(found.decisions.swaps.empty());
}

TEST(Search, ALimitOutOfReachIsSaidAndTheSmallestPlanGiven) {
  testing::Plan plan = testing::two_blocks();
  plan.problem.limit = 99;
  const SearchPlan found = search(plan.problem, find_lives(plan.problem), Objective::kTime, attempts(500));
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
  const Lives lives = find_lives(problem);
  const SearchPlan plan = search(problem, lives, Objective::kFootprint, attempts(2000));
  EXPECT_EQ(plan.footprint, 100U);
  EXPECT_EQ(plan.decisions.swaps.size(), 1U);
  EXPECT_EQ(verify(problem, plan.decisions).fault, std::nullopt);

  // The second copy out ends behind the begin of the first copy in: times alone would allow it.
  problem.machine = {2, 2, 0, 0};
  Candidates candidates = find_candidates(problem, lives);
  ASSERT_GT(candidates.absences.size(), 3U);
  Fitting fitting(problem, lives, candidates);
  Choice choice;
  choice.away.assign(candidates.absences.size(), 0);
  for (const Absence& absence : candidates.absences) choice.out_after.push_back(absence.leaves);
  choice.order = {0, 1, 2};
  for (std::size_t a = 0; a < candidates.absences.size(); ++a) {
    const std::uint64_t leaves = candidates.absences[a].leaves;
    choice.away[a] = leaves == 0 || leaves == 3;
  }
  ASSERT_EQ(std::accumulate(choice.away.begin(), choice.away.end(), 0), 2);
  EXPECT_EQ(fitting.attempt(choice, Fitting::kInfinite), Fitting::kInfinite);
}

TEST(Search, NoBlocksNoSwaps) {
  Problem problem;
  problem.operations = {{Kind::kNothing, kNoBlock, 0}};
  problem.period = 10;
  problem.machine = {1, 1, 0, 0};
  const SearchPlan found = search(problem, find_lives(problem), Objective::kFootprint, attempts(10));
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
    const SearchPlan found = search(problem, find_lives(problem), objective, attempts(100));
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
  const Lives lives = find_lives(problem);
  EXPECT_EQ(search(problem, lives, Objective::kFootprint, limits).attempts, 0U);
  for (const Objective objective : {Objective::kFootprint, Objective::kTime}) {
    if (objective == Objective::kTime) problem.limit = lives.peak / 2;
    cancelled = false;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      cancelled = true;
    });
    const SearchPlan plan = search(problem, lives, objective, limits);
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
    const Lives lives = find_lives(problem);
    SearchLimits limits = attempts(300);
    limits.threads = 2;
    const SearchPlan one = search(problem, lives, Objective::kFootprint, limits);
    const SearchPlan other = search(problem, lives, Objective::kFootprint, limits);
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
    const Lives lives = find_lives(problem);
    const Optimum best = exhaustive(problem);
    EXPECT_FALSE(best.plans.empty());
    if (best.plans.empty()) break;
    problem.limit.reset();
    const SearchPlan smallest = search(problem, lives, Objective::kFootprint, attempts(2000));
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
      const SearchPlan fast = search(problem, lives, Objective::kTime, attempts(3000));
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
  const int count = problems_wanted(30);
  const Tally tally = held_against_everything(problems, count, true);
  EXPECT_GT(tally.dropped, count / 20);
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
  const Lives lives = find_lives(problem);
  const SearchPlan copied = search(problem, lives, Objective::kFootprint, attempts(500));
  EXPECT_EQ(copied.footprint, 200U);  // there is no time for a copy out before block 2
  EXPECT_FALSE(drops(copied.decisions));
  problem.clean_drops = true;
  const SearchPlan dropped = search(problem, lives, Objective::kFootprint, attempts(500));
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
  EXPECT_EQ(search(problem, find_lives(problem), Objective::kFootprint, attempts(500)).footprint, 200U);
}

// Of what is never written, one absence has to copy: in a circle all others could say that one did.
TEST(Search, WhatIsNeverWrittenIsCopiedOnce) {
  Problem problem = read_twice();
  problem.operations[0].kind = Kind::kRead;
  problem.clean_drops = true;
  const SearchPlan plan = search(problem, find_lives(problem), Objective::kFootprint, attempts(500));
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
    const Lives lives = find_lives(problem);
    for (std::uint64_t percent = 40; percent <= 100; percent += 20) {
      problem.limit = lives.peak * percent / 100;
      const Optimum best = exhaustive(problem);
      const SearchPlan plan = search(problem, lives, Objective::kTime, attempts(1500));
      if (!plan.feasible) continue;
      const Report report = verify(problem, plan.decisions);
      ASSERT_EQ(report.fault, std::nullopt) << k << ' ' << percent;
      ASSERT_FALSE(best.plans.empty()) << k;
      EXPECT_GE(report.timing.added_ns, best.plans[0].added_ns - kTolerance) << k << ' ' << percent;
      ++plans;
      equal += report.timing.added_ns <= best.plans[0].added_ns + kTolerance;
    }
  }
  EXPECT_GT(plans, 40);
  EXPECT_GT(equal, plans / 2);
}

// Every second operation reads what it wrote before.
void allow_clean_drops(Problem& problem) {
  for (std::size_t i = 0; i < problem.operations.size(); i += 2) {
    if (problem.operations[i].kind == Kind::kWrite) problem.operations[i].kind = Kind::kRead;
  }
  problem.clean_drops = true;
}

// Nothing waits, and the load is lower.
TEST(Greedy, TakesFromThePeakWhatCanBeBackInTime) {
  const Problem problem = testing::layers(100, 4096);
  const Lives lives = find_lives(problem);
  CandidateLimits every;
  every.least_bytes = 0;
  const Candidates candidates = find_candidates(problem, lives, every);
  Choice none = nothing_away(candidates);
  const Choice chosen = greedy(problem, lives, candidates, none);
  EXPECT_GT(std::count(chosen.away.begin(), chosen.away.end(), 1), 20);
  Fitting load(problem, lives, candidates, Fitting::Places::kNone);
  Choice same = chosen;
  ASSERT_NE(load.attempt(same, Fitting::kInfinite), Fitting::kInfinite);
  EXPECT_EQ(same, chosen) << "some copies are late";
  EXPECT_LT(static_cast<double>(load.height()), 0.85 * static_cast<double>(lives.peak));
}

// There are too many absences to begin with none, and too few attempts to find many.
TEST(Search, SwapsInLongIterationsAtOnce) {
  const Problem problem = testing::layers(600, 1 << 20);
  const Lives lives = find_lives(problem);
  const SearchPlan found = search(problem, lives, Objective::kFootprint, attempts(5));
  EXPECT_GT(found.candidates, 400U);
  const Report report = verify(problem, found.decisions);
  ASSERT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.footprint, found.footprint);
  EXPECT_NEAR(report.timing.added_ns, 0, kTolerance);
  EXPECT_LT(static_cast<double>(found.footprint), 0.97 * static_cast<double>(lives.peak));
  Problem limited = problem;
  limited.limit = found.footprint + found.footprint / 50;
  const SearchPlan same = search(limited, lives, Objective::kTime, attempts(5));
  EXPECT_TRUE(same.feasible);
  EXPECT_EQ(same.added_ns, 0);
}

// Nothing is tried but what comes first, or the time is over somewhere between.
TEST(Search, WithoutTimeThereIsAPlanAllTheSame) {
  for (const bool layout : {true, false}) {
    for (Problem problem : {testing::two_blocks().problem, testing::layers(300, 1 << 20)}) {
      problem.layout = layout;
      problem.limit = 0;
      const Lives lives = find_lives(problem);
      for (const int time : {0, 1, 90, 170}) {
        for (const Objective objective : {Objective::kFootprint, Objective::kTime}) {
          problem.limit = objective == Objective::kTime ? lives.peak / 2 : 2 * lives.peak;
          SearchLimits limits;
          limits.time = std::chrono::milliseconds(time);
          limits.threads = 2;
          const SearchPlan found = search(problem, lives, objective, limits);
          Problem judged = problem;
          judged.limit = std::max(*problem.limit, found.footprint);
          EXPECT_EQ(verify(judged, found.decisions).fault, std::nullopt);
          EXPECT_GT(found.footprint, 0U) << layout << " " << problem.blocks.size() << " " << time;
        }
      }
    }
  }
}

// With slow copies: loads may be above what leaves room for places, and a layout within the limit all the same.
TEST(Search, EndsWithAPlanForAnyLimit) {
  Problem problem = testing::layers(12, 1 << 20);
  problem.machine.out_bytes_per_ns *= 0.3;
  problem.machine.in_bytes_per_ns *= 0.3;
  const Lives lives = find_lives(problem);
  int swapped = 0, feasible = 0;
  for (std::uint64_t part = 110; part <= 206; part += 2) {
    Problem limited = problem;
    limited.limit = lives.peak * part / 200;
    const SearchPlan found = search(limited, lives, Objective::kTime, attempts(1000));
    limited.limit = std::max(*limited.limit, found.footprint);
    const Report report = verify(limited, found.decisions);
    ASSERT_EQ(report.fault, std::nullopt) << part;
    EXPECT_EQ(report.footprint, found.footprint) << part;
    swapped += !found.decisions.swaps.empty();
    feasible += found.feasible;
  }
  EXPECT_GT(swapped, 10);
  EXPECT_GT(feasible, 10);
}

// What is computed from the last choice that was kept is what is computed afresh.
TEST(Fitting, ADifferenceCostsWhatTheWholeDoes) {
  int kept = 0, infinite = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Problem problem = busy_problem(seed);
    if (seed % 2 == 0) allow_clean_drops(problem);
    const Lives lives = find_lives(problem);
    const Candidates candidates = find_candidates(problem, lives);
    ASSERT_GT(candidates.absences.size(), 60U);
    Fitting fitting(problem, lives, candidates);
    std::mt19937_64 random(seed);
    const auto fraction = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    Choice now = nothing_away(candidates);
    for (int k = 0; k < 300; ++k) {
      Choice trial = now;
      const auto below = [&](std::size_t n) { return random() % n; };
      switch (below(4)) {
        case 0:
          // A few again and again: what was given up comes back as it was.
          trial.away[below(below(2) == 0 ? 4 : trial.away.size())] ^= 1;
          break;
        case 1:
          std::swap(trial.order[below(trial.order.size())], trial.order[below(trial.order.size())]);
          break;
        case 2: {
          const auto at = trial.order.begin() + static_cast<std::ptrdiff_t>(below(trial.order.size()));
          std::rotate(trial.order.begin(), at, at + 1);
          break;
        }
        default:
          trial.delays.assign(1, {below(lives.operations), fraction() * 20});
          break;
      }
      const double cost = fitting.attempt(trial, Fitting::kInfinite);
      Fitting fresh(problem, lives, candidates);
      Choice same = trial;
      ASSERT_EQ(cost, fresh.attempt(same, Fitting::kInfinite)) << seed << ' ' << k;
      ASSERT_EQ(same, trial);
      if (cost == Fitting::kInfinite) {
        ++infinite;
        continue;
      }
      ASSERT_EQ(fitting.height(), fresh.height());
      if (below(3) == 0) continue;  // forgotten
      fitting.keep();
      fresh.keep();
      ++kept;
      for (std::uint32_t i = 0; i < candidates.items.size(); ++i) {
        ASSERT_EQ(fitting.places(i), fresh.places(i)) << seed << ' ' << k << ' ' << i;
        ASSERT_EQ(fitting.top(i), fresh.top(i));
        // There may be several that it stands on.
        const std::uint32_t under = fitting.below(i);
        if (fitting.places(i).size() == 1) {
          ASSERT_EQ(under == Fitting::kGround, fitting.places(i)[0] == 0) << seed << ' ' << k << ' ' << i;
        }
        if (under == Fitting::kGround) continue;
        ASSERT_LT(fitting.rank(under), fitting.rank(i));
        ASSERT_TRUE(meet(fitting.stay(under), fitting.stay(i)));
        if (fitting.places(i).size() > 1) continue;
        const std::uint64_t unit = fitting.stay(i).swapped ? problem.chunk : problem.align;
        const auto stands = [&](std::uint64_t at) {
          return std::any_of(fitting.places(under).begin(), fitting.places(under).end(), [&](std::uint64_t one) {
            return (one + problem.blocks[candidates.items[under].block].bytes + unit - 1) / unit * unit == at;
          });
        };
        ASSERT_TRUE(std::any_of(fitting.places(i).begin(), fitting.places(i).end(), stands)) << seed << ' ' << k;
      }
      now = trial;
    }
  }
  EXPECT_GT(kept, 800);
  RecordProperty("infinite", infinite);
}

TEST(Search, PlansOfBusyIterationsHold) {
  std::uint64_t footprints = 0, peaks = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Problem problem = busy_problem(seed);
    if (seed > 6) allow_clean_drops(problem);
    const Lives lives = find_lives(problem);
    const SearchPlan plan = search(problem, lives, Objective::kFootprint, attempts(6000));
    ASSERT_TRUE(plan.feasible);
    const Report report = verify(problem, plan.decisions);
    ASSERT_EQ(report.fault, std::nullopt) << seed;
    EXPECT_EQ(report.timing.added_ns, 0) << seed;
    EXPECT_GT(plan.decisions.swaps.size(), 5U);
    EXPECT_EQ(drops(plan.decisions), problem.clean_drops) << seed;
    footprints += plan.footprint;
    peaks += lives.peak;
    problem.limit = plan.footprint * 9 / 10;
    const SearchPlan small = search(problem, lives, Objective::kTime, attempts(6000));
    if (!small.feasible) continue;
    const Report timed = verify(problem, small.decisions);
    ASSERT_EQ(timed.fault, std::nullopt) << seed;
    EXPECT_NEAR(timed.timing.added_ns, small.added_ns, kTolerance);
  }
  EXPECT_LT(footprints, peaks * 95 / 100);
}

TEST(Clock, TellsOperationsOfNoLengthApart) {
  Problem problem;
  for (const double time : {0.0, 10.0, 10.0, 10.0, 20.0})
    problem.operations.push_back({Kind::kNothing, kNoBlock, time});
  problem.period = 30;
  Clock clock(problem);
  EXPECT_EQ(clock.not_before(10), point_of(1));
  EXPECT_EQ(clock.not_after(10), point_of(3));
  EXPECT_EQ(clock.not_before(5), point_of(0) + (1U << (kPointBits - 1)));
  EXPECT_EQ(clock.not_after(15), point_of(3) + (1U << (kPointBits - 1)));
  EXPECT_EQ(clock.not_before(30), point_of(5));
  EXPECT_EQ(clock.not_after(45), point_of(8) + (1U << (kPointBits - 1)));
  EXPECT_EQ(clock.last_ended(10, 0, 5), 2U);
  const Delay delay{4, 7};
  clock.delay({&delay, 1});
  EXPECT_EQ(clock.period(), 37);
  EXPECT_EQ(clock.begin(4), 27);
  EXPECT_EQ(clock.end(3), 20);
  // Between two operations: the first is over, the second has not begun.
  EXPECT_EQ(clock.not_before(23), point_of(4));
  EXPECT_EQ(clock.not_after(23), point_of(4));
}

}  // namespace
}  // namespace memopt::swap
