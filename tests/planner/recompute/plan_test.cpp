#include "planner/recompute/model/plan.h"

#include <gtest/gtest.h>

#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using testing::Program;
using Kind = Step::Kind;

class RecomputePlan : public ::testing::Test {
 protected:
  Cost cost(const Steps& steps) {
    const swap::Problem& problem = program_.problem();
    const swap::Liveness liveness = swap::find_liveness(problem);
    return find_cost(problem, liveness, make_graph(problem, liveness), steps);
  }
  std::string fault(const Steps& steps) { return cost(steps).fault.value_or("none"); }

  Program program_;
};

// x, y of x, both, and then x alone.
class TwoBlocks : public RecomputePlan {
 protected:
  TwoBlocks() {
    x_ = program_.make(100, 10, {});
    y_ = program_.make(60, 5, {x_});
    behind_y_ = program_.operations();
    const auto z = program_.make(70, 1, {y_});
    program_.release(y_);
    program_.release(z);
    before_last_ = program_.operations();
    program_.launch(2, {x_}, {});
    program_.release(x_);
  }
  std::uint32_t x_, y_, behind_y_, before_last_;
};

TEST_F(TwoBlocks, WithoutStepsItIsTheLoad) {
  EXPECT_EQ(cost({}).peak, 230u);
  EXPECT_EQ(cost({}).added_ns, 0);
}

TEST_F(TwoBlocks, WhatIsDroppedIsMadeAgain) {
  const Cost found = cost({{behind_y_, Kind::kDrop, x_}, {before_last_, Kind::kReplay, 0}});
  EXPECT_EQ(found.fault, std::nullopt);
  EXPECT_EQ(found.peak, 160u);
  EXPECT_EQ(found.added_ns, 10);
  EXPECT_EQ(found.replays, 1u);
  EXPECT_EQ(found.drops, 1u);
}

TEST_F(TwoBlocks, WhatIsRefused) {
  EXPECT_EQ(fault({{behind_y_, Kind::kDrop, x_}}),
            "operation " + std::to_string(before_last_) + ": block 0, which is read, is not in memory");
  EXPECT_EQ(fault({{behind_y_, Kind::kDrop, x_}, {behind_y_, Kind::kDrop, x_}}), "steps[1]: block 0 is not in memory");
  EXPECT_EQ(fault({{1, Kind::kDrop, x_}}), "steps[0]: block 0 is not in memory");  // it has its bytes, but no contents
  EXPECT_EQ(fault({{1, Kind::kReplay, 0}}), "steps[0]: the launch is not behind it");
  EXPECT_EQ(fault({{behind_y_, Kind::kReplay, 9}}), "steps[0]: there is no such launch");
  EXPECT_EQ(fault({{behind_y_, Kind::kDrop, 9}}), "steps[0]: there is no such block");
  EXPECT_EQ(fault({{before_last_, Kind::kDrop, y_}}), "steps[0]: block 1 is not in memory");
  EXPECT_EQ(fault({{before_last_, Kind::kReplay, 1}}), "block 1 is left behind at the end");
  EXPECT_EQ(fault({{before_last_, Kind::kReplay, 1}, {before_last_, Kind::kDrop, y_}}), "none");
  EXPECT_EQ(fault({{before_last_, Kind::kDrop, x_}, {before_last_, Kind::kReplay, 1}}),
            "steps[1]: block 0, which is read, is not in memory");
  EXPECT_EQ(fault({{before_last_, Kind::kReplay, 0}, {behind_y_, Kind::kReplay, 0}}),
            "steps[1]: expected operations in order, up to " + std::to_string(program_.operations()));
  // The launch that makes y is two operations.
  EXPECT_EQ(fault({{behind_y_ - 1, Kind::kReplay, 0}}), "steps[0]: it is within a launch");
}

TEST_F(RecomputePlan, WhatIsChangedInPlaceIsMadeByAllOfItsMakers) {
  const auto x = program_.make(100, 10, {});
  program_.launch(3, {x}, {x});
  const auto at = program_.operations();
  program_.launch(1, {x}, {});
  program_.release(x);
  EXPECT_EQ(fault({{at, Kind::kDrop, x}, {at, Kind::kReplay, 0}}),
            "operation " + std::to_string(at) + ": block 0, which is read, is not as it was");
  EXPECT_EQ(fault({{at, Kind::kDrop, x}, {at, Kind::kReplay, 1}}),
            "steps[1]: block 0, which is read, is not in memory");
  const Cost found = cost({{at, Kind::kDrop, x}, {at, Kind::kReplay, 0}, {at, Kind::kReplay, 1}});
  EXPECT_EQ(found.fault, std::nullopt);
  EXPECT_EQ(found.added_ns, 13);
  // Of what is there in a later version, a replay of an earlier maker writes into bytes besides.
  const Cost besides = cost({{at, Kind::kReplay, 0}});
  EXPECT_EQ(besides.fault, std::nullopt);
  EXPECT_EQ(besides.peak, 200u);
}

TEST_F(RecomputePlan, WhatAReplayReadsMustNotHaveChanged) {
  const auto w = program_.persistent(50);
  const auto x = program_.make(100, 10, {w});
  const auto y = program_.make(100, 10, {x});
  program_.release(x);
  const auto before = program_.operations();
  program_.launch(1, {w}, {w});
  const auto behind = program_.operations();
  program_.launch(1, {y}, {});
  program_.release(y);
  EXPECT_EQ(fault({{before, Kind::kReplay, 0}, {before, Kind::kDrop, x}}), "none");
  EXPECT_EQ(fault({{behind, Kind::kReplay, 0}}), "steps[0]: block 0, which is read, is not as it was");
}

TEST_F(RecomputePlan, OtherResultsOfAReplayTakeBytesToo) {
  const auto x = program_.allocate(100), mask = program_.allocate(40);
  program_.launch(10, {}, {x, mask});
  program_.launch(1, {mask}, {});
  program_.release(mask);
  const auto at = program_.operations();
  const auto large = program_.make(120, 1, {});
  program_.release(large);
  const auto last = program_.operations();
  program_.launch(1, {x}, {});
  program_.release(x);
  const Cost found = cost({{at, Kind::kDrop, x}, {last, Kind::kReplay, 0}, {last, Kind::kDrop, mask}});
  EXPECT_EQ(found.fault, std::nullopt);
  EXPECT_EQ(found.peak, 140u);
}

}  // namespace
}  // namespace memopt::recompute
