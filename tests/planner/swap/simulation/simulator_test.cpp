#include "planner/swap/simulation/simulator.h"

#include <gtest/gtest.h>

#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

using testing::load_only;
using testing::one_place;
using testing::Plan;
using testing::two_blocks;

Timing timing_of(const Plan& plan) {
  const Liveness liveness = find_liveness(plan.problem);
  Simulator simulator(plan.problem, liveness);
  const Timing whole = simulator.record(plan.decisions);
  const Timing quick = simulator.evaluate(plan.decisions);
  EXPECT_EQ(whole.fault, quick.fault);
  EXPECT_NEAR(whole.added_ns, quick.added_ns, 1e-6);
  EXPECT_NEAR(whole.stall_access_ns, quick.stall_access_ns, 1e-6);
  EXPECT_NEAR(whole.stall_malloc_ns, quick.stall_malloc_ns, 1e-6);
  return whole;
}

TEST(Simulator, AddsNothingWithoutSwaps) {
  const Timing timing = timing_of(two_blocks());
  EXPECT_EQ(timing.fault, Fault::kNone);
  EXPECT_TRUE(timing.steady);
  EXPECT_EQ(timing.added_ns, 0);
}

TEST(Simulator, CopiesThatFitAddNothing) {
  const Timing timing = timing_of(one_place());
  EXPECT_EQ(timing.fault, Fault::kNone);
  EXPECT_EQ(timing.added_ns, 0);
  EXPECT_EQ(timing.early_swap_ins, 0);
}

TEST(Simulator, AnAllocationWaitsForTheCopyOut) {
  Plan plan = one_place();
  plan.problem.machine.out_bytes_per_ns = 4;  // from 20 to 45; allocated at 30
  const Timing timing = timing_of(plan);
  EXPECT_NEAR(timing.added_ns, 15, 1e-9);
  EXPECT_NEAR(timing.stall_malloc_ns, 15, 1e-9);
  EXPECT_EQ(timing.stall_access_ns, 0);
}

TEST(Simulator, LazyAllocationWaitsAtTheFirstAccess) {
  Plan plan = one_place();
  plan.problem.machine.out_bytes_per_ns = 4;
  plan.problem.lazy_malloc = true;
  EXPECT_NEAR(timing_of(plan).stall_access_ns, 5, 1e-9);
}

TEST(Simulator, AnAccessWaitsForTheCopyIn) {
  Plan plan = one_place();
  plan.decisions.swaps[0].in_after = 7;  // from 80 to 90; needed at 80
  EXPECT_NEAR(timing_of(plan).stall_access_ns, 10, 1e-9);
}

TEST(Simulator, LatencyCountsBothWays) {
  Plan plan = one_place();
  plan.problem.machine.out_latency_ns = 5;
  plan.problem.machine.in_latency_ns = 7;
  EXPECT_NEAR(timing_of(plan).added_ns, 12, 1e-9);
}

TEST(Simulator, ACopyInBeforeItsBytesAreGivenUpIsEarly) {
  Plan plan = one_place();
  plan.decisions.swaps[0].in_after = 4;
  const Timing timing = timing_of(plan);
  EXPECT_EQ(timing.added_ns, 0);
  EXPECT_EQ(timing.early_swap_ins, 1);
}

TEST(Simulator, BlocksOnTheSameBytesOverlap) {
  Plan plan = two_blocks();
  plan.decisions.places[1].offsets = {99};
  EXPECT_EQ(timing_of(plan).fault, Fault::kOverlap);
}

// The first copy in waits for the free of block 1; behind it in the queue is what operation 5 needs.
TEST(Simulator, ACircleOfWaitsIsADeadlock) {
  Plan plan = two_blocks();
  plan.problem.blocks.push_back({.id = 2, .bytes = 100, .persistent = true});
  using enum Kind;
  plan.problem.operations = {{kMalloc, 0, 0}, {kRead, 2, 10}, {kWrite, 0, 20}, {kMalloc, 1, 30},
                             {kWrite, 1, 40}, {kRead, 0, 50}, {kFree, 1, 60},  {kNothing, kNoBlock, 70},
                             {kRead, 2, 80},  {kFree, 0, 90}};
  plan.decisions.places = {{{0}, true}, {{100}, false}, {{100}, true}};
  plan.decisions.swaps = {{.block = 2, .out_after = 1, .in_after = 3, .need = 8},
                          {.block = 0, .out_after = 2, .in_after = 4, .need = 5}};
  EXPECT_EQ(timing_of(plan).fault, Fault::kDeadlock);
  plan.decisions.swaps[0].in_after = 6;
  EXPECT_NEAR(timing_of(plan).added_ns, 10, 1e-9);
}

// Without copy the bytes are free at once; the host's copy is that of the swap before.
TEST(Simulator, WhatIsDroppedTakesNoTime) {
  Plan plan = two_blocks();
  plan.problem.blocks = {{.id = 0, .bytes = 100, .persistent = true}, {.id = 1, .bytes = 50}};
  using enum Kind;
  const auto nothing = kNoBlock;
  plan.problem.operations = {{kNothing, nothing, 0},  {kNothing, nothing, 10}, {kWrite, 0, 20},
                             {kMalloc, 1, 30},        {kFree, 1, 40},          {kNothing, nothing, 50},
                             {kNothing, nothing, 60}, {kNothing, nothing, 70}, {kRead, 0, 80},
                             {kNothing, nothing, 90}};
  plan.decisions.swaps = {{.block = 0, .out_after = 2, .in_after = 6, .need = 8},
                          {.block = 0, .out_after = 8, .in_after = 10, .need = 12}};
  EXPECT_EQ(timing_of(plan).added_ns, 0);
  plan.decisions.swaps[1].in_after = 11;  // around the boundary: from 10 to 20 of the next iteration, needed at 20
  plan.problem.machine.out_bytes_per_ns = 2;
  EXPECT_GT(timing_of(plan).added_ns, 0);
  plan.decisions.swaps[1].copy = false;
  EXPECT_LT(timing_of(plan).added_ns, 50);
}

// The copy out ends at 30, the copy in is issued at 70, and is needed at 80.
TEST(Simulator, AReturnElsewhereWaitsForTheHost) {
  EXPECT_EQ(timing_of(testing::returns_elsewhere(20)).added_ns, 0);
  EXPECT_NEAR(timing_of(testing::returns_elsewhere(25)).stall_access_ns, 10, 1e-9);
}

// There is one host: what it maps for block 0 from 30 on it maps for block 2 before, which is out since 20.
TEST(Simulator, TheHostMapsOneAfterTheOther) {
  Plan plan = testing::returns_elsewhere(10);
  plan.problem.blocks.push_back({.id = 2, .bytes = 250, .persistent = true});
  plan.problem.operations[2] = {Kind::kRead, 2, 20};
  plan.problem.operations[7] = {Kind::kRead, 2, 70};
  plan.decisions.places.push_back({{300}, true});
  // Its copies take 25 ns each; three chunks are mapped after each.
  plan.decisions.swaps = {{.block = 2, .out_after = 2, .in_after = 3, .need = 7, .returns_to = {600}},
                          {.block = 2, .out_after = 7, .in_after = 9, .need = 12},
                          plan.decisions.swaps[0]};
  const Liveness liveness = find_liveness(plan.problem);
  Simulator simulator(plan.problem, liveness);
  ASSERT_EQ(simulator.record(plan.decisions).fault, Fault::kNone);
  EXPECT_EQ(simulator.remapped_chunks(0), 3U);
  EXPECT_EQ(simulator.remapped_chunks(1), 3U);
  EXPECT_EQ(simulator.remapped_chunks(2), 2U);
  // In the first iteration: out from 30 (behind block 0's copy) to 55, mapped until 85, copied in until 110.
  EXPECT_NEAR(simulator.in_begin(0, 0), 85, 1e-9);
  // Block 2's wait of 40 ns has moved what is behind it. Block 0 is mapped from 85 to 105, but the engine is busy.
  EXPECT_NEAR(simulator.in_begin(2, 0), 110, 1e-9);
}

TEST(Simulator, ABlockThatReturnsToWhereItWasIsNotMapped) {
  Plan plan = testing::returns_elsewhere(1000);
  plan.decisions.swaps[0].returns_to = {0};
  EXPECT_EQ(timing_of(plan).added_ns, 0);
}

TEST(Simulator, AReturnElsewhereTakesBytesThere) {
  Plan plan = testing::returns_elsewhere(0);
  plan.problem.blocks[1].persistent = true;
  plan.problem.operations[3] = plan.problem.operations[6] = {Kind::kRead, 1, 30};
  plan.problem.operations[6].time = 60;
  plan.decisions.places[1].offsets = {100};
  EXPECT_EQ(timing_of(plan).fault, Fault::kOverlap);
  plan.decisions.places[1].offsets = {200};
  EXPECT_EQ(timing_of(plan).fault, Fault::kNone);
}

// The copies out of an iteration take 1 ns longer than it. Nothing waits for them at first, but they fall behind.
TEST(Simulator, NoIterationIsShorterThanItsCopies) {
  Plan plan;
  for (std::uint32_t b = 0; b < 10; ++b) {
    plan.problem.blocks.push_back({.id = b, .bytes = 101, .persistent = true});
    plan.problem.operations.push_back({Kind::kRead, b, 10.0 * b});
    plan.decisions.places.push_back({{101 * b}, true});
    plan.decisions.swaps.push_back({.block = b, .out_after = b, .in_after = b + 5, .need = b + 10});
  }
  plan.problem.period = 100;
  plan.problem.machine = {10, 1000, 0, 0};
  plan.problem.chunk = 1;
  EXPECT_NEAR(timing_of(plan).added_ns, 1, 1e-9);
  plan.problem.machine = {1000, 10, 0, 0};
  EXPECT_NEAR(timing_of(plan).added_ns, 1, 1e-9);
  plan.problem.layout = false;
  plan.problem.limit = 2000;
  plan.decisions.places.clear();
  EXPECT_NEAR(timing_of(plan).added_ns, 1, 1e-9);
}

// Ten returns to other places an iteration.
TEST(Simulator, NorThanTheHostNeedsToMapAnew) {
  Plan plan;
  for (std::uint32_t b = 0; b < 5; ++b) {
    plan.problem.blocks.push_back({.id = b, .bytes = 100, .persistent = true});
    plan.decisions.places.push_back({{100 * b}, true});
    plan.decisions.swaps.push_back(
        {.block = b, .out_after = b, .in_after = b + 1, .need = b + 5, .returns_to = {1000 + 100 * b}});
    plan.decisions.swaps.push_back({.block = b, .out_after = b + 5, .in_after = b + 6, .need = b + 10});
  }
  for (std::uint32_t i = 0; i < 10; ++i) plan.problem.operations.push_back({Kind::kRead, i % 5, 10.0 * i});
  plan.problem.period = 100;
  plan.problem.machine = {1000, 1000, 0, 0, 8};
  plan.problem.chunk = 100;
  EXPECT_EQ(timing_of(plan).added_ns, 0);
  plan.problem.machine.remap_ns = 10.01;
  EXPECT_NEAR(timing_of(plan).added_ns, 0.1, 1e-9);
}

TEST(Simulator, WithoutLayoutBytesAreInterchangeable) {
  Plan plan = load_only(100);
  const Timing timing = timing_of(plan);
  EXPECT_NEAR(timing.added_ns, 15, 1e-9);
  EXPECT_EQ(timing.peak_resident, 100U);
  plan.problem.limit = 99;
  EXPECT_EQ(timing_of(plan).fault, Fault::kOverLimit);
}

TEST(Simulator, TwoPlacesInTurn) {
  Plan plan = two_blocks();
  plan.problem.blocks.resize(1);
  using enum Kind;
  const auto nothing = kNoBlock;
  plan.problem.operations = {{kNothing, nothing, 0}, {kMalloc, 0, 10},  {kWrite, 0, 20},        {kNothing, nothing, 30},
                             {kRead, 0, 40, 1},      {kFree, 0, 50, 1}, {kNothing, nothing, 60}};
  plan.problem.period = 70;
  plan.decisions.places = {{{0, 100}, false}};
  EXPECT_EQ(timing_of(plan).fault, Fault::kNone);
  plan.decisions.places = {{{0}, false}};
  EXPECT_EQ(timing_of(plan).fault, Fault::kOverlap);
}

}  // namespace
}  // namespace memopt::swap
