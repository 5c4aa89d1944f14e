// When swaps are planned, and what an agent that carries them out is sent.
#include "planner/sending/swap_planner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "agent/plan/plan.h"
#include "planner/program.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/sending/told.h"
#include "tests/planner/sending/training.h"

namespace memopt::planner {
namespace {

using Bytes = std::vector<std::byte>;

constexpr shm::SwapTermsBody kTerms{25, 25, 8000, 8000, 2 << 20, 0, 0};

shm::PlanHeader header_of(const Bytes& plan) {
  shm::PlanHeader header{};
  std::memcpy(&header, plan.data(), sizeof(header));
  return header;
}

// A planner::Program that is told everything, and what it sends.
class ToldPlanner final : public Told {
 public:
  Program program;
  std::vector<Bytes> plans;

  ToldPlanner(const std::optional<shm::SwapTermsBody>& terms, bool waited_for) : program(waited_for) {
    if (terms) program.swap_on(*terms);
  }

  // Adopts the last plan.
  void follow() {
    program.adopted(plans.size());
    add(builder_.state(shm::StateChange::kLive, plans.size(), 0));
  }
  void refuse(std::uint64_t excess = 0) { program.refused(plans.size(), excess); }
  // A better plan beside the records, if there is one.
  bool improve() {
    auto plan = program.improved();
    if (plan) keep(std::move(*plan));
    return plan.has_value();
  }

 private:
  void add(const shm::RecordView& record) override {
    program.add(0, record);
    if (builder_.sequence() < check_point_) return;
    check_point_ = shm::next_check_point(check_point_);
    if (auto plan = program.plan()) keep(std::move(*plan));
  }
  // Plans are numbered from 1.
  void keep(Bytes plan) {
    EXPECT_EQ(header_of(plan).generation, 0u) << "its sender gives it";
    set_generation(plan, plans.size() + 1);
    plans.push_back(std::move(plan));
    program.sent(plans.size());
  }

  std::uint64_t check_point_ = shm::kFirstCheckPoint;
};

using Telling = Training<ToldPlanner>;

std::uint64_t footprint_of(const Bytes& plan) {
  const shm::PlanHeader header = header_of(plan);
  return header.slab_bytes + (header.swaps.count == 0 ? header.persistent_bytes : 0);
}

// Of a program at a limit, for copies on demand: far more than any plan adds.
constexpr std::uint64_t kOnDemand = 500'000'000;

void iterate(Telling& training, int times) {
  for (int i = 0; i < times; ++i) training.iterate();
}

// Of the layout of that program.
std::uint64_t unswapped_footprint(std::uint64_t seed) {
  Telling training(seed, std::nullopt, true);
  iterate(training, 20);
  return footprint_of(training.told.plans.at(0));
}

// More in each iteration than `training` has.
void iterate_longer(Telling& training, std::uint64_t extra) {
  training.iterate();
  const std::uint64_t block = training.told.malloc(16 << 20, 501, 501);
  training.told.launch(500, {extra, block});
  training.told.took(3'000'000);
  training.told.free(block);
}

// The next plan that comes beside the program's records and swaps, waited for.
std::optional<Bytes> swapped(ToldPlanner& told) {
  for (int i = 0; i < 60'000; ++i) {
    if (told.improve() && header_of(told.plans.back()).swaps.count != 0) return told.plans.back();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

TEST(SwapPlanner, AProgramThatWaitsHasSwapsWithTheFirstPlan) {
  std::size_t swapped = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Telling laid_out(seed, std::nullopt, true), training(seed, kTerms, true), again(seed, kTerms, true);
    for (Telling* const each : {&laid_out, &training, &again}) iterate(*each, 20);
    ASSERT_EQ(laid_out.told.plans.size(), 1u) << seed;
    ASSERT_EQ(training.told.plans.size(), 1u) << seed << ": " << training.told.program.note();
    EXPECT_EQ(training.told.plans, again.told.plans) << seed;
    EXPECT_EQ(header_of(laid_out.told.plans[0]).swaps.count, 0u);
    const shm::PlanHeader header = header_of(training.told.plans[0]);
    EXPECT_EQ(header.generation, 1u);
    EXPECT_EQ(header.signature, header_of(laid_out.told.plans[0]).signature);
    std::string fault;
    const auto read = agent::parse_plan(training.told.plans[0], &fault);
    ASSERT_NE(read, nullptr) << seed << ": " << fault;
    if (header.swaps.count == 0) continue;
    ++swapped;
    EXPECT_LT(footprint_of(training.told.plans[0]), footprint_of(laid_out.told.plans[0])) << seed;
    EXPECT_LE(header.added_ns, header.period_ns / 1000) << seed;
    EXPECT_NE(training.told.program.note().find("planned " + std::to_string(header.swaps.count) + " swaps"),
              std::string::npos)
        << training.told.program.note();
  }
  EXPECT_GE(swapped, 4u);
}

TEST(SwapPlanner, WhereTheyAreRefusedTheLayoutFollows) {
  Telling training(1, kTerms, true);
  while (training.told.plans.empty()) training.iterate();
  EXPECT_NE(header_of(training.told.plans[0]).swaps.count, 0u);
  training.told.refuse();
  EXPECT_NE(training.told.program.note().find("refused the swaps"), std::string::npos) << training.told.program.note();
  iterate(training, 50);
  ASSERT_EQ(training.told.plans.size(), 2u);
  EXPECT_EQ(header_of(training.told.plans[1]).swaps.count, 0u);
  EXPECT_EQ(header_of(training.told.plans[1]).generation, 2u);
  // And if that is, too, nothing more.
  training.told.refuse();
  iterate(training, 50);
  EXPECT_EQ(training.told.plans.size(), 2u);
}

TEST(SwapPlanner, OthersHaveTheLayoutFirst) {
  Telling training(1, kTerms, false);
  ToldPlanner& told = training.told;
  while (told.plans.empty()) training.iterate();
  const Bytes first = told.plans[0];
  EXPECT_EQ(header_of(first).swaps.count, 0u);
  told.follow();
  const std::optional<Bytes> second = swapped(told);
  ASSERT_TRUE(second.has_value()) << told.program.note();
  std::string fault;
  ASSERT_NE(agent::parse_plan(*second, &fault), nullptr) << fault;
  EXPECT_EQ(header_of(*second).generation, told.plans.size());
  EXPECT_EQ(header_of(*second).signature, header_of(first).signature);
  EXPECT_LT(footprint_of(*second), footprint_of(first) * 99 / 100);
  // A refusal ends it for this iteration, whose layout is followed still.
  const std::size_t sent = told.plans.size();
  told.refuse();
  EXPECT_NE(told.program.note().find("refused the swaps"), std::string::npos) << told.program.note();
  iterate(training, 50);
  EXPECT_FALSE(told.improve());
  EXPECT_EQ(told.plans.size(), sent);
}

// The refusal of a plan that another has followed since says nothing of that one.
TEST(SwapPlanner, ALateRefusalIsOfAnOlderPlan) {
  Telling training(1, kTerms, false);
  ToldPlanner& told = training.told;
  while (told.plans.empty()) training.iterate();
  const std::uint64_t layout = told.plans.size();
  told.follow();
  ASSERT_TRUE(swapped(told).has_value()) << told.program.note();
  told.program.refused(layout);
  EXPECT_EQ(told.program.note().find("refused"), std::string::npos) << told.program.note();
  EXPECT_NE(told.program.note().find("planned "), std::string::npos) << told.program.note();
}

TEST(SwapPlanner, ALaunchThatMayTouchAnythingTakesThemBack) {
  for (const bool sent : {false, true}) {
    Telling training(1, kTerms, false);
    ToldPlanner& told = training.told;
    while (told.plans.empty()) training.iterate();
    told.follow();
    if (sent) {
      ASSERT_TRUE(swapped(told).has_value()) << told.program.note();
    }
    EXPECT_NE(told.program.note().find("swaps"), std::string::npos) << told.program.note();
    const std::size_t before = told.plans.size();
    told.blind = true;
    told.launch(99, {});
    EXPECT_NE(told.program.note().find("could not be read"), std::string::npos) << told.program.note();
    // The layout takes the place of swaps that were sent.
    EXPECT_EQ(told.improve(), sent);
    EXPECT_EQ(told.plans.size(), before + (sent ? 1 : 0));
    EXPECT_EQ(header_of(told.plans.back()).swaps.count, 0u);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(told.improve());
  }
}

// The period is the device's, and what is sent is what the search finds for what was measured.
TEST(SwapPlanner, PlansForTheTimesOfTheDevice) {
  Telling training(3, kTerms, true);
  iterate(training, 20);
  ASSERT_EQ(training.told.plans.size(), 1u);
  // The same iteration, found by hand.
  class Kept final : public Told {
   public:
    IterationPlanner planner{[] {
      IterationPlanner::Options options;
      options.planning.unroll = true;
      return options;
    }()};
    TimedIteration iteration{""};
    std::uint64_t check_point = shm::kFirstCheckPoint;
    Bytes plan;

   private:
    void add(const shm::RecordView& record) override {
      iteration.add(0, record, false);
      planner.add(0, record);
      if (builder_.sequence() < check_point) return;
      check_point = shm::next_check_point(check_point);
      const bool found = planner.check();
      iteration.look(planner);
      if (!found) return;
      IterationProblem built = iteration.problem(iteration.times());
      swap::Problem& problem = built.problem;
      const std::vector<StayingPages> pages =
          gather_pages(built.persistent, kTerms.chunk_bytes, problem, built.ranks).pages;
      join_launches(built.ranks, problem);
      problem.machine = {25, 25, 8000, 8000};
      swap::SearchLimits limits;
      limits.time = std::chrono::nanoseconds::max();
      limits.attempts = 8000;
      const swap::Liveness liveness = swap::find_liveness(problem);
      const swap::SearchPlan found_swaps = swap::search(problem, liveness, swap::Objective::kFootprint, limits);
      std::string fault;
      plan = SwapPlanWriter(planner.store(), *planner.plan(), planner.persistent())
                 .bytes({problem, pages, found_swaps.decisions, built.ranks, found_swaps.added_ns}, fault);
      set_generation(plan, 1);
    }
  };
  Training<Kept> kept(3);
  for (int i = 0; i < 20; ++i) kept.iterate();
  EXPECT_EQ(training.told.plans[0], kept.told.plan);
}

TEST(SwapPlanner, WithoutDeviceTimesThereAreNoSwaps) {
  Telling training(1, kTerms, true);
  training.told.measured = [](std::uint64_t) { return false; };
  iterate(training, 12);
  ASSERT_EQ(training.told.plans.size(), 1u);
  EXPECT_EQ(header_of(training.told.plans[0]).swaps.count, 0u);
  EXPECT_NE(training.told.program.note().find("MEMOPT_DEVICE_TIMES"), std::string::npos)
      << training.told.program.note();
  // They come later after all: of a few operations, which is not enough, then of half of them.
  int few = 5;
  training.told.measured = [&](std::uint64_t) { return few-- > 0; };
  iterate(training, 10);
  EXPECT_EQ(training.told.plans.size(), 1u) << training.told.program.note();
  training.told.measured = [](std::uint64_t operation) { return operation % 3 == 0; };
  iterate(training, 20);
  ASSERT_EQ(training.told.plans.size(), 2u) << training.told.program.note();
  EXPECT_NE(header_of(training.told.plans[1]).swaps.count, 0u);
  EXPECT_EQ(header_of(training.told.plans[1]).generation, 2u);

  // But not for ever.
  Telling never(1, kTerms, true);
  never.told.measured = [](std::uint64_t) { return false; };
  iterate(never, 50);
  EXPECT_NE(never.told.program.note().find("no swaps are planned"), std::string::npos) << never.told.program.note();
}

TEST(SwapPlanner, NothingIsSwappedBesideLaunchesThatMayTouchAnything) {
  Telling training(1, kTerms, true);
  training.told.blind = true;
  training.told.launch(99, {});
  training.told.blind = false;
  iterate(training, 50);
  ASSERT_EQ(training.told.plans.size(), 1u);
  EXPECT_EQ(header_of(training.told.plans[0]).swaps.count, 0u);
  EXPECT_NE(training.told.program.note().find("what a launch touches"), std::string::npos)
      << training.told.program.note();
}

TEST(SwapPlanner, KeepsToALimit) {
  shm::SwapTermsBody terms = kTerms;
  // A little slower, so that there is time to be added.
  terms.out_bytes_per_ns = terms.in_bytes_per_ns = 2;
  struct Planned {
    Bytes plan;
    std::string note;
  };
  const auto within = [&](std::uint64_t limit) {
    terms.memory_limit = limit;
    Telling training(4, terms, true);
    training.waits = kOnDemand;
    iterate(training, 20);
    EXPECT_EQ(training.told.plans.size(), 1u);
    return Planned{training.told.plans.at(0), training.told.program.note()};
  };
  const std::uint64_t whole = unswapped_footprint(4);
  const Planned limited = within(whole * 6 / 10);
  EXPECT_NE(header_of(limited.plan).swaps.count, 0u) << limited.note;
  EXPECT_LE(footprint_of(limited.plan), whole * 6 / 10);
  EXPECT_GT(header_of(limited.plan).added_ns, 0u);

  const Planned roomy = within(whole);
  EXPECT_EQ(header_of(roomy.plan).swaps.count, 0u);
  EXPECT_NE(roomy.note.find("no swaps are needed"), std::string::npos) << roomy.note;

  const Planned impossible = within(4 << 20);
  EXPECT_EQ(header_of(impossible.plan).swaps.count, 0u);
  EXPECT_NE(impossible.note.find("keep to 4.0 MiB; the least so far is"), std::string::npos) << impossible.note;
}

// Neither blocks of the iteration, nor pages of those that live through all.
TEST(SwapPlanner, WhatIsToStayIsNotSwapped) {
  for (const std::uint64_t seed : {2, 4, 5}) {
    shm::SwapTermsBody terms = kTerms;
    terms.memory_limit = unswapped_footprint(seed) * 7 / 10;
    Telling all(seed, terms, true);
    all.waits = kOnDemand;
    iterate(all, 20);
    std::string fault;
    const auto swapped = agent::parse_plan(all.told.plans.at(0), &fault);
    ASSERT_NE(swapped, nullptr) << fault;
    ASSERT_FALSE(swapped->swaps.empty()) << seed;
    // The largest that is swapped, and what lies in the first pages that are.
    std::uint64_t bytes = 0;
    for (const shm::PlannedSwap& swap : swapped->swaps) {
      if ((swap.flags & shm::kSwapPages) == 0) bytes = std::max(bytes, swapped->mallocs[swap.block].bytes);
    }
    if (bytes == 0) continue;
    Telling some(seed, terms, true);
    some.waits = kOnDemand;
    some.told.stays = [&](std::uint64_t its) { return its == bytes; };
    iterate(some, 20);
    const auto without = agent::parse_plan(some.told.plans.at(0), &fault);
    ASSERT_NE(without, nullptr) << fault;
    for (const shm::PlannedSwap& swap : without->swaps) {
      if ((swap.flags & shm::kSwapPages) == 0) {
        EXPECT_NE(without->mallocs[swap.block].bytes, bytes) << seed;
      }
    }
  }
}

// The iteration is known by the times of some of its operations each time, so that it is also known how long it took.
TEST(SwapPlanner, AtALimitNoSwapsAreSentThatAreSlowerThanOnDemand) {
  shm::SwapTermsBody terms = kTerms;
  terms.out_bytes_per_ns = terms.in_bytes_per_ns = 2;
  terms.memory_limit = unswapped_footprint(4) * 6 / 10;
  struct Planned {
    shm::PlanHeader header;
    std::string note;
    std::uint64_t takes;
  };
  const auto with_waits = [&](std::uint64_t waits) {
    Telling training(4, terms, true);
    training.waits = waits;
    training.told.measured = [](std::uint64_t operation) { return operation % 2 == 0 || operation < 3; };
    std::uint64_t began = 0, takes = 0;
    for (int i = 0; i < 20; ++i) {
      began = training.told.now();
      training.iterate();
      takes = training.told.now() - began;
    }
    EXPECT_EQ(training.told.plans.size(), 1u);
    return Planned{header_of(training.told.plans.at(0)), training.told.program.note(), takes};
  };
  const Planned slow = with_waits(kOnDemand);
  EXPECT_NE(slow.header.swaps.count, 0u) << slow.note;
  EXPECT_GT(slow.header.added_ns, 0u);
  EXPECT_NEAR(static_cast<double>(slow.header.otherwise_ns), static_cast<double>(slow.takes),
              0.1 * static_cast<double>(slow.takes));
  const Planned fast = with_waits(slow.header.added_ns / 4);
  EXPECT_EQ(fast.header.swaps.count, 0u) << "on demand it takes " << fast.takes;
  EXPECT_NE(fast.note.find("and on demand it is"), std::string::npos) << fast.note;
}

// Blocks that stay lie where they are: the slab and they are within the limit together, and none of them is swapped.
TEST(SwapPlanner, KeepsToALimitBesideBlocksThatStay) {
  shm::SwapTermsBody terms = kTerms;
  terms.flags = shm::kPersistentStays;
  for (const std::uint64_t seed : {2, 4, 5}) {
    terms.memory_limit = unswapped_footprint(seed) * 8 / 10;
    Telling training(seed, terms, true);
    training.waits = kOnDemand;
    iterate(training, 20);
    ASSERT_EQ(training.told.plans.size(), 1u);
    const shm::PlanHeader header = header_of(training.told.plans[0]);
    ASSERT_NE(header.swaps.count, 0u) << seed << ": " << training.told.program.note();
    EXPECT_LE(header.slab_bytes + header.persistent_bytes, terms.memory_limit) << seed;
    EXPECT_NE(header.persistent_bytes, 0u);
    EXPECT_NE(header.persistent.count, 0u);
    EXPECT_EQ(header.pages.count, 0u);
    std::string fault;
    const auto read = agent::parse_plan(training.told.plans[0], &fault);
    ASSERT_NE(read, nullptr) << fault;
    for (const shm::PlannedSwap& swap : read->swaps) EXPECT_EQ(swap.flags & shm::kSwapPages, 0u);
  }
}

TEST(SwapPlanner, PlansForLessWhenThePlanWasTooLarge) {
  shm::SwapTermsBody terms = kTerms;
  terms.flags = shm::kPersistentStays;
  terms.memory_limit = unswapped_footprint(4) * 8 / 10;
  Telling training(4, terms, true);
  training.waits = kOnDemand;
  iterate(training, 20);
  constexpr std::uint64_t kExcess = 2 << 20;
  for (std::uint64_t refused = 1; refused <= 2; ++refused) {
    ASSERT_EQ(training.told.plans.size(), refused) << training.told.program.note();
    training.told.refuse(kExcess);
    iterate(training, 20);
    ASSERT_EQ(training.told.plans.size(), refused + 1) << training.told.program.note();
    const shm::PlanHeader header = header_of(training.told.plans.back());
    EXPECT_NE(header.swaps.count, 0u);
    EXPECT_LE(header.slab_bytes + header.persistent_bytes, terms.memory_limit - refused * kExcess);
  }
  // For what is no matter of size it is not tried again.
  training.told.refuse();
  iterate(training, 20);
  ASSERT_EQ(training.told.plans.size(), 4u);
  EXPECT_EQ(header_of(training.told.plans.back()).swaps.count, 0u);
}

// Swaps of an iteration that the program has left are not sent behind the layout of the next.
TEST(SwapPlanner, AnotherIterationEndsWhatIsBeingPlanned) {
  Telling training(1, kTerms, false);
  ToldPlanner& told = training.told;
  while (told.plans.empty()) training.iterate();
  told.follow();
  EXPECT_NE(told.program.note().find("swaps are being planned"), std::string::npos) << told.program.note();
  const shm::PlanHeader first = header_of(told.plans.back());
  const std::uint64_t extra = told.malloc(32 << 20, 500, 500);
  while (told.plans.size() < 2) iterate_longer(training, extra);
  const shm::PlanHeader second = header_of(told.plans.back());
  EXPECT_NE(second.signature, first.signature);
  EXPECT_EQ(second.swaps.count, 0u);
  told.follow();
  const std::optional<Bytes> third = swapped(told);
  ASSERT_TRUE(third.has_value()) << told.program.note();
  EXPECT_EQ(header_of(*third).signature, second.signature);
  EXPECT_EQ(header_of(*third).generation, told.plans.size());
}

// Its memory would grow for as long as the next swaps are being planned.
TEST(SwapPlanner, AProgramThatFollowsSwapsIsNotSentALayoutFirst) {
  for (const std::uint64_t sampling : {1, 16}) {
    Telling training(1, kTerms, false);
    ToldPlanner& told = training.told;
    told.measured = [=](std::uint64_t operation) { return (operation * 0x9e3779b97f4a7c15 >> 40) % sampling == 0; };
    while (told.plans.empty()) training.iterate();
    iterate(training, 20);
    told.follow();
    const std::optional<Bytes> first = swapped(told);
    ASSERT_TRUE(first.has_value()) << sampling << ": " << told.program.note();
    const std::uint64_t extra = told.malloc(32 << 20, 500, 500);
    // A better one of the first iteration may come meanwhile.
    for (int i = 0; i < 3000 && header_of(told.plans.back()).signature == header_of(*first).signature; ++i) {
      iterate_longer(training, extra);
      told.improve();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const shm::PlanHeader second = header_of(told.plans.back());
    EXPECT_NE(second.signature, header_of(*first).signature) << sampling << ": " << told.program.note();
    EXPECT_NE(second.swaps.count, 0u) << sampling << ": " << told.program.note();
    EXPECT_EQ(second.generation, told.plans.size());
  }
}

// The layout of one iteration may do for another, whose launches are others; the swaps of one never do.
TEST(SwapPlanner, SwapsAreOfTheirOwnIterationOnly) {
  Telling training(1, kTerms, true);
  ToldPlanner& told = training.told;
  while (told.plans.empty()) training.iterate();
  const shm::PlanHeader first = header_of(told.plans[0]);
  ASSERT_NE(first.swaps.count, 0u);
  told.follow();
  told.other_functions = 1000;
  iterate(training, 30);
  ASSERT_EQ(told.plans.size(), 2u) << told.program.note();
  const shm::PlanHeader second = header_of(told.plans[1]);
  EXPECT_NE(second.signature, first.signature);
  EXPECT_NE(second.swaps.count, 0u);
  // Where it can't have any, its layout follows.
  told.follow();
  told.measured = [](std::uint64_t) { return false; };
  told.other_functions = 2000;
  iterate(training, 60);
  ASSERT_EQ(told.plans.size(), 3u) << told.program.note();
  EXPECT_NE(header_of(told.plans[2]).signature, second.signature);
  EXPECT_EQ(header_of(told.plans[2]).swaps.count, 0u);
}

// A program that follows a layout which does for another iteration, too, has that one's swaps when it is back on it.
TEST(SwapPlanner, ALayoutThatIsKeptIsFollowedAsAnyOther) {
  Telling training(1, kTerms, false);
  ToldPlanner& told = training.told;
  told.measured = [](std::uint64_t) { return false; };
  while (told.plans.empty()) training.iterate();
  told.follow();
  told.other_functions = 1000;
  iterate(training, 10);
  EXPECT_EQ(told.plans.size(), 1u);
  // Half of the next iterations' operations are known, and no more will be.
  told.measured = [](std::uint64_t operation) { return operation % 3 != 0; };
  iterate(training, 1);
  EXPECT_EQ(told.program.note().find("being planned"), std::string::npos) << told.program.note();
  told.follow();
  const std::optional<Bytes> plan = swapped(told);
  ASSERT_TRUE(plan.has_value()) << told.program.note();
  EXPECT_NE(header_of(*plan).signature, header_of(told.plans[0]).signature);
}

// A program that leaves the plan of a step between epochs, and finds back, gains nothing from a plan of an epoch that
// adds more.
TEST(SwapPlanner, ThePlanOfALoopStaysWhereOneOfAllAroundItIsNoFaster) {
  shm::SwapTermsBody terms = kTerms;
  terms.out_bytes_per_ns = terms.in_bytes_per_ns = 2;
  terms.memory_limit = unswapped_footprint(4) * 6 / 10;
  Telling training(4, terms, true);
  training.waits = kOnDemand;
  while (training.told.plans.empty()) training.iterate();
  ASSERT_NE(header_of(training.told.plans[0]).swaps.count, 0u) << training.told.program.note();
  training.told.follow();
  for (int epoch = 0; epoch < 30; ++epoch) {
    iterate(training, 4);
    const std::uint64_t block = training.told.malloc(1 << 20, 501, 501);
    training.told.launch(500, {block});
    training.told.took(1000);
    training.told.free(block);
  }
  EXPECT_NE(training.told.program.note().find("the plan of a loop within the iteration stays"), std::string::npos)
      << training.told.program.note();
  EXPECT_EQ(training.told.plans.size(), 1u);
}

// On demand each iteration takes far longer than by any plan.
TEST(SwapPlanner, AtALimitNearlyAllTimesAreEnough) {
  shm::SwapTermsBody terms = kTerms;
  terms.memory_limit = unswapped_footprint(4) * 6 / 10;
  Telling training(4, terms, false);
  training.waits = kOnDemand;
  const std::uint64_t block = training.told.malloc(1 << 20, 500, 500);
  for (int i = 0; i < 12; ++i) {
    training.iterate();
    training.told.launch(500, {block});  // how long it takes is never known
  }
  EXPECT_TRUE(swapped(training.told).has_value()) << training.told.program.note();
}

// What counts is not the sum of the times only: where hardly any is guessed any more, a plan that then adds more than
// was said is replaced, by one that adds less.
TEST(SwapPlanner, PlansAgainWhenNearlyAllTimesAreMeasured) {
  shm::SwapTermsBody terms = kTerms;
  terms.out_bytes_per_ns = terms.in_bytes_per_ns = 2;
  int of_about_the_same_sum = 0;
  for (const std::uint64_t seed : {14, 29, 36}) {
    terms.memory_limit = unswapped_footprint(seed) * 6 / 10;
    Telling training(seed, terms, true);
    training.waits = kOnDemand;
    std::uint64_t launches = 0;
    training.told.measured = [&](std::uint64_t operation) {
      launches = operation + 1;
      return false;
    };
    training.iterate();
    const std::uint64_t each = launches;
    // The same ones in each iteration: a sixth is guessed.
    training.told.measured = [each](std::uint64_t operation) { return operation % each % 6 != 1; };
    for (int i = 0; i < 30 && training.told.plans.empty(); ++i) training.iterate();
    ASSERT_EQ(training.told.plans.size(), 1u) << seed << ": " << training.told.program.note();
    const shm::PlanHeader first = header_of(training.told.plans[0]);
    ASSERT_NE(first.swaps.count, 0u) << seed;
    training.told.follow();
    training.told.measured = [](std::uint64_t) { return true; };
    iterate(training, 20);
    ASSERT_GT(training.told.plans.size(), 1u) << seed;
    const shm::PlanHeader last = header_of(training.told.plans.back());
    ASSERT_NE(last.swaps.count, 0u) << seed;
    const std::uint64_t change =
        last.period_ns > first.period_ns ? last.period_ns - first.period_ns : first.period_ns - last.period_ns;
    if (change * 25 < first.period_ns) ++of_about_the_same_sum;
    // And that is all: nothing more will be known.
    training.told.follow();
    const std::size_t plans = training.told.plans.size();
    iterate(training, 60);
    EXPECT_EQ(training.told.plans.size(), plans) << seed;
  }
  EXPECT_GE(of_about_the_same_sum, 1);
}

// A layout that is larger than the limit is of no use to a program with a plan within it.
TEST(SwapPlanner, ALayoutAboveTheLimitReplacesNoSwaps) {
  shm::SwapTermsBody terms = kTerms;
  terms.memory_limit = unswapped_footprint(4) * 6 / 10;
  Telling training(4, terms, true);
  training.waits = kOnDemand;
  while (training.told.plans.empty()) training.iterate();
  ASSERT_NE(header_of(training.told.plans[0]).swaps.count, 0u) << training.told.program.note();
  const std::uint64_t extra = training.told.malloc(terms.memory_limit, 500, 500);
  for (int i = 0; i < 100; ++i) iterate_longer(training, extra);
  EXPECT_EQ(training.told.plans.size(), 1u);
  EXPECT_NE(training.told.program.note().find("no swaps were found that keep to"), std::string::npos)
      << training.told.program.note();
  // Without those it is better than nothing. What was not sent has no number.
  training.told.refuse();
  for (int i = 0; i < 20; ++i) iterate_longer(training, extra);
  ASSERT_EQ(training.told.plans.size(), 2u);
  EXPECT_EQ(header_of(training.told.plans[1]).swaps.count, 0u);
  EXPECT_EQ(header_of(training.told.plans[1]).generation, 2u);
}

}  // namespace
}  // namespace memopt::planner
