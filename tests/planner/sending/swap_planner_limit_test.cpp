// Swaps for a program that is to keep to a limit.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "agent/plan/plan.h"
#include "planner/sending/swap_planner.h"
#include "tests/planner/sending/told_planner.h"

namespace memopt::planner {
namespace {

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
  // limits_table.py reads this.
  EXPECT_NE(impossible.note.find("no swaps can keep to 4.0 MiB: one operation uses "), std::string::npos)
      << impossible.note;
  EXPECT_NE(impossible.note.find(" MiB that stay"), std::string::npos) << impossible.note;
}

// Of the iteration; pages are staying_pages_test's.
TEST(SwapPlanner, WhatIsToStayIsNotSwapped) {
  int others = 0;
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
    // The largest that is swapped.
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
        ++others;
      }
    }
  }
  EXPECT_GT(others, 0);
}

// A kernel stores the address of a block in each iteration. Known before swaps are planned, the block is in none of
// them; known later, they are planned again.
TEST(SwapPlanner, BlocksWhoseAddressIsStoredAreNotSwapped) {
  constexpr std::uint64_t kSeed = 4;
  shm::SwapTermsBody terms = kTerms;
  terms.memory_limit = unswapped_footprint(kSeed) * 7 / 10;
  const auto swapped_bytes = [](const std::vector<std::byte>& bytes) {
    std::string fault;
    const auto plan = agent::parse_plan(bytes, &fault);
    std::set<std::uint64_t> swapped;
    if (plan == nullptr) ADD_FAILURE() << fault;
    for (const shm::PlannedSwap& swap : plan->swaps) {
      if ((swap.flags & shm::kSwapPages) == 0) swapped.insert(plan->mallocs[swap.block].bytes);
    }
    return swapped;
  };
  Telling all(kSeed, terms, true);
  all.waits = kOnDemand;
  iterate(all, 20);
  const std::set<std::uint64_t> swapped = swapped_bytes(all.told.plans.at(0));
  ASSERT_FALSE(swapped.empty());
  const std::uint64_t bytes = *swapped.rbegin();
  for (const bool late : {false, true}) {
    Telling some(kSeed, terms, true);
    some.waits = kOnDemand;
    std::set<std::uint64_t> stored;  // of that size
    const auto is_stored = [&](std::uint64_t block) { return stored.erase(block) != 0; };
    (late ? some.told.escapes_late : some.told.escapes) = is_stored;
    some.told.made = [&](std::uint64_t block, std::uint64_t its) {
      if (its == bytes) stored.insert(block);
    };
    iterate(some, 20);
    EXPECT_FALSE(swapped_bytes(some.told.plans.at(0)).contains(bytes)) << late;
  }
  // From the twentieth iteration on.
  Telling some(kSeed, terms, true);
  some.waits = kOnDemand;
  iterate(some, 20);
  ASSERT_EQ(some.told.plans.size(), 1u);
  std::set<std::uint64_t> stored;
  some.told.escapes = [&](std::uint64_t block) { return stored.erase(block) != 0; };
  some.told.made = [&](std::uint64_t block, std::uint64_t its) {
    if (its == bytes) stored.insert(block);
  };
  iterate(some, 20);
  ASSERT_EQ(some.told.plans.size(), 2u) << some.told.program.note();
  EXPECT_FALSE(swapped_bytes(some.told.plans[1]).contains(bytes));
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

// Two blocks of which one must be away while a third is used. The copy of the first comes back beside the launch behind
// that use, the copy of the second leaves beside the launch before it: which one is to be swapped is a matter of which
// of these two launches is the long one. Their times are guessed by the bytes that they name.
class EitherBlock {
 public:
  ToldPlanner told;
  bool knows_all = false;  // how long these two launches take

  explicit EitherBlock(const shm::SwapTermsBody& terms) : told(terms, true) {
    told.measured = [this](std::uint64_t) { return known_; };
    small_ = told.malloc(kMiB, 100, 7);
  }

  static constexpr std::uint64_t kMiB = 1 << 20, kBlock = 64 * kMiB, kLimit = 2 * kBlock + 22 * kMiB;

  void iterate() {
    const std::uint64_t first = told.malloc(kBlock, 10, 70);
    const std::uint64_t second = told.malloc(kBlock, 11, 71);
    launch(1, {second}, kUse);
    launch(2, {first}, kUse);
    for (std::uint32_t i = 0; i < 10; ++i) launch(10 + i, {small_}, kUse);
    launch(3, {second}, kUse);
    known_ = knows_all;
    launch(4, {small_}, kLong);
    known_ = true;
    const std::uint64_t third = told.malloc(kBlock, 12, 72);
    launch(5, {third}, kUse);
    told.free(third);
    const std::uint64_t large = told.malloc(20 * kMiB, 13, 73);
    known_ = knows_all;
    launch(6, {large}, kShort);
    known_ = true;
    told.free(large);
    launch(7, {first}, kUse);
    for (std::uint32_t i = 0; i < 10; ++i) launch(20 + i, {small_}, kUse);
    launch(8, {second}, kUse);
    told.free(second);
    told.free(first);
    told.pause(kOnDemand);
  }

 private:
  // A copy takes 8 ms, a small part of the iteration; the guesses are 10 and 0.5 ms.
  static constexpr std::uint64_t kUse = 7'000'000, kLong = 10'000'000, kShort = 500'000;

  void launch(std::uint32_t function, std::initializer_list<std::uint64_t> blocks, std::uint64_t nanoseconds) {
    told.launch(function, blocks);
    told.took(nanoseconds);
  }

  bool known_ = true;
  std::uint64_t small_ = 0;
};

// What counts is not the sum of the times only: where hardly any is guessed any more, a plan that then adds more than
// was said is replaced, by one that adds less.
TEST(SwapPlanner, PlansAgainWhenNearlyAllTimesAreMeasured) {
  shm::SwapTermsBody terms = kTerms;
  terms.out_bytes_per_ns = terms.in_bytes_per_ns = 8;
  terms.memory_limit = EitherBlock::kLimit;
  EitherBlock program(terms);
  for (int i = 0; i < 30 && program.told.plans.empty(); ++i) program.iterate();
  ASSERT_EQ(program.told.plans.size(), 1u) << program.told.program.note();
  program.told.follow();
  program.knows_all = true;
  for (int i = 0; i < 20; ++i) program.iterate();
  ASSERT_EQ(program.told.plans.size(), 2u) << program.told.program.note();
  const shm::PlanHeader first = header_of(program.told.plans[0]), last = header_of(program.told.plans[1]);
  EXPECT_NEAR(static_cast<double>(last.period_ns), static_cast<double>(first.period_ns),
              0.05 * static_cast<double>(first.period_ns));
  for (const shm::PlanHeader& header : {first, last}) {
    EXPECT_NE(header.swaps.count, 0u);
    EXPECT_LT(header.added_ns, 1'000'000u);
  }
  // And that is all: nothing more will be known.
  program.told.follow();
  for (int i = 0; i < 60; ++i) program.iterate();
  EXPECT_EQ(program.told.plans.size(), 2u);
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
  EXPECT_NE(training.told.program.note().find("no swaps can keep to"), std::string::npos)
      << training.told.program.note();
  // Without those it is better than nothing. What was not sent has no number.
  training.told.refuse();
  for (int i = 0; i < 20; ++i) iterate_longer(training, extra);
  ASSERT_EQ(training.told.plans.size(), 2u);
  EXPECT_EQ(header_of(training.told.plans[1]).swaps.count, 0u);
  EXPECT_EQ(header_of(training.told.plans[1]).generation, 2u);
}

// What an iteration takes by a plan is not what it would take on demand.
TEST(SwapPlanner, OnDemandIsWhatWasMeasuredWhileNoSwapsWereFollowed) {
  shm::SwapTermsBody terms = kTerms;
  terms.memory_limit = unswapped_footprint(4) * 6 / 10;
  for (const bool leaves : {false, true}) {
    Telling training(4, terms, true);
    ToldPlanner& told = training.told;
    training.waits = kOnDemand;
    told.measured = [](std::uint64_t operation) { return operation % 2 == 0; };
    while (told.plans.empty()) training.iterate();
    const shm::PlanHeader first = header_of(told.plans[0]);
    ASSERT_NE(first.swaps.count, 0u) << told.program.note();
    told.follow();
    if (leaves) told.deviate();
    // The same operations, but by other functions.
    training.waits = kOnDemand / 2;
    told.other_functions = 1000;
    iterate(training, 30);
    ASSERT_EQ(told.plans.size(), 2u) << told.program.note();
    const auto on_demand = static_cast<double>(first.otherwise_ns);
    EXPECT_GT(on_demand, static_cast<double>(kOnDemand));
    EXPECT_NEAR(static_cast<double>(header_of(told.plans[1]).otherwise_ns),
                leaves ? on_demand - static_cast<double>(kOnDemand / 2) : on_demand, 0.02 * on_demand);
  }
}

}  // namespace
}  // namespace memopt::planner
