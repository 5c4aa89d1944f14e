#include "planner/swap/simulation/verify.h"

#include <gtest/gtest.h>

#include "tests/planner/swap/small_plans.h"

namespace memopt::swap {
namespace {

using testing::load_only;
using testing::one_place;
using testing::Plan;
using testing::two_blocks;

std::string fault_of(const Plan& plan, const Rules& rules = {}) {
  return verify(plan.problem, plan.decisions, rules).fault.value_or("");
}

bool says(const std::string& fault, const std::string& part) { return fault.find(part) != std::string::npos; }

TEST(Verify, CountsWhatAPlanCosts) {
  const Plan plan = one_place();
  const Report report = verify(plan.problem, plan.decisions);
  EXPECT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.footprint, 100U);
  EXPECT_EQ(report.peak_live, 200U);
  EXPECT_EQ(report.peak_resident, 100U);
  EXPECT_EQ(report.bytes_out, 100U);
  EXPECT_EQ(report.bytes_in, 100U);
  EXPECT_NEAR(report.out_utilisation, 0.1, 1e-9);
}

TEST(Verify, EarlyCopiesAreRefusedUnlessAllowed) {
  Plan plan = one_place();
  plan.decisions.swaps[0].in_after = 4;
  EXPECT_TRUE(says(fault_of(plan), "before its bytes were given up"));
  EXPECT_EQ(fault_of(plan, {.no_early = false}), "");
}

// Streams are kept for the runtime that issues the plan; the order of the list is what counts.
TEST(Verify, OperationsOfAllStreamsRunInOrder) {
  Plan plan = one_place();
  plan.problem.machine.out_bytes_per_ns = 4;
  const Report one = verify(plan.problem, plan.decisions);
  EXPECT_NEAR(one.timing.added_ns, 15, 1e-9);
  for (std::size_t i = 0; i < plan.problem.operations.size(); ++i) {
    plan.problem.operations[i].stream = static_cast<std::uint32_t>(i % 3);
  }
  const Report several = verify(plan.problem, plan.decisions);
  EXPECT_EQ(several.fault, std::nullopt);
  EXPECT_EQ(several.timing.added_ns, one.timing.added_ns);
  EXPECT_EQ(several.peak_resident, one.peak_resident);
}

TEST(Verify, SharedBytes) {
  Plan plan = two_blocks();
  plan.decisions.places[1].offsets = {99};
  EXPECT_TRUE(says(fault_of(plan), "same bytes"));
  plan = one_place();
  plan.decisions.swaps[0].out_after = 5;
  EXPECT_TRUE(says(fault_of(plan), "same bytes"));
}

TEST(Verify, SwapsAgainstLifetimesAndAccesses) {
  Plan plan = one_place();
  plan.decisions.swaps[0].need = 9;
  EXPECT_TRUE(says(fault_of(plan), "accessed by operation 8"));
  plan.decisions.swaps[0].need = 10;
  EXPECT_TRUE(says(fault_of(plan), "after its free"));
  plan.decisions.swaps[0] = {.block = 0, .out_after = 1, .in_after = 8, .need = 8};
  EXPECT_TRUE(says(fault_of(plan), "out_after <= in_after < need"));
  plan.decisions.swaps[0] = {.block = 0, .out_after = 1, .in_after = 6};
  EXPECT_TRUE(says(fault_of(plan), "both in_after and need"));
  plan = one_place();
  plan.decisions.swaps.push_back(plan.decisions.swaps[0]);
  EXPECT_TRUE(says(fault_of(plan), "goes out again"));
  plan = one_place();
  plan.decisions.swaps[0].copy = false;
  EXPECT_TRUE(says(fault_of(plan), "never copied out"));
  plan = one_place();
  plan.problem.blocks[0].pinned = true;
  EXPECT_TRUE(says(fault_of(plan), "pinned"));
}

TEST(Verify, Places) {
  Plan plan = one_place();
  plan.problem.limit = 99;
  EXPECT_TRUE(says(fault_of(plan), "above the limit of 99"));
  plan = one_place();
  plan.problem.chunk = 64;
  plan.decisions.places[0].offsets = {32};
  EXPECT_TRUE(says(fault_of(plan), "multiple of 64"));
  plan.decisions.places[0] = {{0}, false};
  EXPECT_TRUE(says(fault_of(plan), "expected own"));
  plan = two_blocks();
  plan.problem.align = 8;
  EXPECT_TRUE(says(fault_of(plan), "multiple of 8"));
  plan.decisions.places.clear();
  EXPECT_TRUE(says(fault_of(plan), "a place for each block"));
}

TEST(Verify, WhereABlockReturnsTo) {
  Plan plan = testing::returns_elsewhere(10);
  const Report report = verify(plan.problem, plan.decisions);
  EXPECT_EQ(report.fault, std::nullopt);
  EXPECT_EQ(report.footprint, 200u);
  EXPECT_EQ(report.returns_elsewhere, 1u);
  EXPECT_EQ(report.remapped_chunks, 2u);
  plan.problem.limit = 199;
  EXPECT_TRUE(says(fault_of(plan), "above the limit of 199"));
  plan = testing::returns_elsewhere(10);
  plan.decisions.swaps[0].returns_to = {50};
  EXPECT_TRUE(says(fault_of(plan), "swaps[0]: offset: expected a multiple of 100"));
  plan.decisions.swaps[0].returns_to = {100, 200};
  EXPECT_TRUE(says(fault_of(plan), "swaps[0]: offset: expected 1, as of block 0, found 2"));
  plan.problem.machine.remap_ns.reset();
  EXPECT_TRUE(says(fault_of(plan), "as machine.remap_ns is not given"));
  plan = testing::returns_elsewhere(10);
  plan.problem.operations[8] = {Kind::kNothing, kNoBlock, 80};
  plan.decisions.swaps[0] = {.block = 0, .out_after = 1, .returns_to = {100}};
  EXPECT_TRUE(says(fault_of(plan), "as it does not return"));
  plan = testing::returns_elsewhere(10);
  plan.problem.layout = false;
  plan.problem.limit = 200;
  EXPECT_TRUE(says(fault_of(plan), "as there is no layout"));
  // Block 1 is there while block 0 comes back.
  plan = testing::returns_elsewhere(10);
  plan.decisions.places[1].offsets = {100};
  plan.decisions.swaps[0].in_after = 4;
  plan.decisions.swaps[0].need = 5;
  plan.problem.operations[8] = {Kind::kNothing, kNoBlock, 80};
  plan.problem.operations[5] = {Kind::kRead, 0, 50};
  EXPECT_TRUE(says(fault_of(plan), "same bytes"));
}

TEST(Verify, ProblemsThatAreNoIteration) {
  Plan plan = two_blocks();
  plan.problem.operations[6].kind = Kind::kRead;
  EXPECT_TRUE(says(fault_of(plan), "an allocation and a free"));
  plan = two_blocks();
  plan.problem.operations[2] = {Kind::kRead, 1, 20};
  EXPECT_TRUE(says(fault_of(plan), "outside its lifetime"));
  plan = two_blocks();
  plan.problem.operations[4].time = 20;
  EXPECT_TRUE(says(fault_of(plan), "ops[4]: time"));
  plan = two_blocks();
  plan.problem.machine.in_bytes_per_ns = 0;
  EXPECT_TRUE(says(fault_of(plan), "machine.in_bytes_per_ns"));
  plan = two_blocks();
  plan.problem.layout = false;
  EXPECT_TRUE(says(fault_of(plan), "limit"));
}

// Within 100 bytes block 1 would have to wait.
TEST(LeastLimit, IsThatUnderWhichNothingTakesLonger) {
  Plan plan = load_only(1000);
  const Liveness liveness = find_liveness(plan.problem);
  EXPECT_EQ(least_limit(plan.problem, liveness, plan.decisions), 200u);
  plan.problem.machine.out_bytes_per_ns = 10;  // until 30
  EXPECT_EQ(least_limit(plan.problem, liveness, plan.decisions), 100u);
}

}  // namespace
}  // namespace memopt::swap
