// When swaps are planned, and what an agent that carries them out is sent.
#include "planner/sending/swap_planner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "agent/plan/plan.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/sending/told_planner.h"

namespace memopt::planner {
namespace {

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

}  // namespace
}  // namespace memopt::planner
