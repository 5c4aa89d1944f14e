// Mallocs whose blocks outlive iterations now and then: gradients that the first of several batches makes, and the
// others add to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/iteration/plan_bytes.h"
#include "stream.h"

namespace memopt::planner {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr int kLayers = 4;

IterationPlanner::Options options(Unsteady unsteady, bool pools = true) {
  IterationPlanner::Options options;
  options.planning.pools = pools;
  options.planning.unsteady = unsteady;
  return options;
}

// Steps of several batches each.
class Accumulating {
 public:
  Stream stream;
  // Of threads: where backward passes are made, and what else the optimizer allocates.
  std::uint32_t backward_lane = 0;
  bool optimizer_allocates = false;
  bool layers_differ = true;  // by size and by call
  std::uint64_t gradient_bytes = kMiB;

  explicit Accumulating(Unsteady unsteady, bool pools = true) : stream(options(unsteady, pools)) {
    for (int i = 0; i < kLayers; ++i) weights_.push_back(stream.malloc(kMiB, 100));
  }

  void batch(bool keeps_gradients) {
    std::vector<std::uint64_t> activations;
    for (int i = 0; i < kLayers; ++i) {
      activations.push_back(malloc(4 * kMiB, 1, i));
      stream.launch(1, {weights_[i], activations.back()});
    }
    stream.lane = backward_lane;
    for (std::size_t i = kLayers; i-- > 0;) {
      const std::uint64_t gradient = malloc(gradient_bytes, 2, static_cast<int>(i));
      stream.launch(2, {weights_[i], activations[i], gradient});
      stream.free(activations[i]);
      if (keeps_gradients) {
        gradients_.push_back(gradient);
      } else {
        stream.launch(3, {gradient, gradients_.empty() ? weights_[i] : gradients_[kLayers - 1 - i]});
        stream.free(gradient);
      }
    }
    stream.lane = 0;
  }
  void step(int batches) {
    for (const std::uint64_t gradient : gradients_) stream.free(gradient);
    gradients_.clear();
    for (int i = 0; i < batches; ++i) batch(i == 0);
    for (std::uint32_t i = 0; optimizer_allocates && i < 100; ++i) {
      const std::uint64_t state = stream.malloc(kMiB / 2 + i * 512, 4);
      stream.launch(10 + i, {state});
      stream.free(state);
      if (i == 0) stream.deviate();
    }
    stream.launch(5, weights_);
  }

 private:
  std::uint64_t malloc(std::uint64_t bytes, std::uint64_t stack, int layer) {
    if (!layers_differ) return stream.malloc(bytes, stack, stack);
    const auto number = static_cast<std::uint64_t>(layer);
    return stream.malloc(bytes + number * 512, stack + 10 * number, stack + 10 * number);
  }

  std::vector<std::uint64_t> weights_, gradients_;
};

bool is_gradient(std::uint64_t bytes) { return bytes < 2 * kMiB; }

TEST(Unsteady, BlocksThatOthersAddToHaveNoPlaceInTheirLoop) {
  for (const std::uint32_t backward_lane : {0, 1}) {
    for (const bool layers_differ : {true, false}) {
      for (const bool pools : {true, false}) {
        Accumulating program(Unsteady::kNotPlaced, pools);
        program.backward_lane = backward_lane;
        program.layers_differ = layers_differ;
        program.batch(false);  // the first of all has others before it
        program.step(8);
        ASSERT_EQ(program.stream.plans.size(), 1u) << program.stream.planner.note();
        const IterationPlan& plan = program.stream.plans[0].plan;
        EXPECT_EQ(not_placed(plan.lifetimes), std::size_t{kLayers});
        const std::uint64_t activations = 16 * kMiB + (layers_differ ? 6 * 512 : 0);
        EXPECT_EQ(plan.outcome.solution.height, activations);
        // The load is the program's, placed or not.
        EXPECT_GE(plan.lifetimes.peak_load, plan.lifetimes.persistent_bytes + activations + kMiB);

        const PlanParts parts = plan_parts(plan, {});
        std::vector<std::uint32_t> listed(parts.places.size());
        for (const shm::PlannedMalloc& malloc : parts.mallocs) {
          EXPECT_EQ(malloc.places == 0, is_gradient(malloc.bytes));
          if (malloc.places == 0) continue;
          ASSERT_LE(malloc.first_place + malloc.places, listed.size());
          for (std::uint32_t turn = 0; turn < malloc.places; ++turn) {
            EXPECT_GE(parts.places[malloc.first_place + turn].bytes, malloc.bytes);
            ++listed[malloc.first_place + turn];
          }
        }
        EXPECT_EQ(std::count(listed.begin(), listed.end(), 0), 0);
      }
    }
  }
}

TEST(Unsteady, TheyHaveOneWhereAllAreToBePlaced) {
  Accumulating program(Unsteady::kPlaced);
  program.step(8);
  ASSERT_EQ(program.stream.plans.size(), 1u) << program.stream.planner.note();
  EXPECT_EQ(not_placed(program.stream.plans[0].plan.lifetimes), 0u);
}

// Whoever follows the mallocs sees their sizes and return addresses, not the calls that lead there.
TEST(Unsteady, WhatCannotBeToldFromThemHasNoneEither) {
  for (const bool pools : {true, false}) {
    for (const std::uint32_t unsteady : {0, 1}) {
      Stream stream(options(Unsteady::kNotPlaced, pools));
      std::uint64_t kept = 0;
      for (int i = 0; i < 10; ++i) {
        for (const std::uint32_t half : {0, 1}) {
          const std::uint64_t block = stream.malloc(kMiB, half);
          stream.launch(half, {kept == 0 || half != unsteady ? block : kept});
          if (i == 1 && half == unsteady) {
            kept = block;
          } else {
            stream.free(block);
          }
        }
      }
      ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
      const IterationPlan& plan = stream.plans[0].plan;
      EXPECT_EQ(plan.lifetimes.lanes.at(0).parts, 2u);
      EXPECT_EQ(not_placed(plan.lifetimes), 2u);
      EXPECT_EQ(plan.outcome.solution.height, 0u);
      for (const shm::PlannedMalloc& malloc : plan_parts(plan, {}).mallocs) EXPECT_EQ(malloc.places, 0u);
    }
  }
}

// It is made by the same call, and as large, as one that each iteration makes and frees.
TEST(Unsteady, WhatIsMadeOnceTellsNothing) {
  Stream stream(options(Unsteady::kNotPlaced));
  const std::uint64_t weights = stream.malloc(kMiB, 100), state = stream.malloc(2 * kMiB, 2);
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t a = stream.malloc(4 * kMiB, 1);
    stream.launch(1, {weights, a});
    const std::uint64_t b = stream.malloc(2 * kMiB, 2);
    stream.launch(2, {state, a, b});
    stream.free(a);
    stream.free(b);
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_EQ(not_placed(stream.plans[0].plan.lifetimes), 0u);
}

// Behind a deviation, and not before the blocks are old enough to tell.
TEST(Unsteady, ALoopIsPlannedAgainWhenTheyTurnOutToBe) {
  Accumulating program(Unsteady::kNotPlaced);
  for (int i = 0; i < 12; ++i) program.batch(false);
  ASSERT_EQ(program.stream.plans.size(), 1u) << program.stream.planner.note();
  EXPECT_EQ(not_placed(program.stream.plans[0].plan.lifetimes), 0u);
  program.step(0);
  program.batch(true);
  program.stream.deviate();
  for (int i = 0; i < 12; ++i) program.batch(false);
  ASSERT_EQ(program.stream.plans.size(), 2u) << program.stream.planner.note();
  EXPECT_EQ(program.stream.plans[1].operations, program.stream.plans[0].operations);
  EXPECT_EQ(not_placed(program.stream.plans[1].plan.lifetimes), std::size_t{kLayers});
  // And that is all.
  program.stream.deviate();
  for (int i = 0; i < 24; ++i) program.batch(false);
  EXPECT_EQ(program.stream.plans.size(), 2u);
}

// The thread of the backward passes repeats where that of the optimizer does not.
TEST(Unsteady, AThreadOfThePlannedIterationIsNoOtherIteration) {
  Accumulating program(Unsteady::kNotPlaced);
  program.backward_lane = 1;
  program.optimizer_allocates = true;
  program.gradient_bytes = 6 * kMiB;
  program.step(40);
  ASSERT_EQ(program.stream.plans.size(), 1u) << program.stream.planner.note();
  const std::uint64_t batch = program.stream.plans[0].operations;
  for (int i = 0; i < 5; ++i) program.step(40);
  for (const FoundPlan& found : program.stream.plans) {
    EXPECT_FALSE(found.plan.iteration.partial) << found.operations;
    EXPECT_GE(found.operations, batch);
  }
  EXPECT_GT(program.stream.plans.back().operations, 40 * (batch - 2 * kLayers)) << "the steps";
}

// Unless that is what the program does from then on: what the other one allocates never comes again.
TEST(Unsteady, AThreadThatGoesOnAloneIsPlannedInTheEnd) {
  Accumulating program(Unsteady::kNotPlaced);
  program.backward_lane = 1;
  program.gradient_bytes = 6 * kMiB;
  for (int i = 0; i < 20; ++i) program.batch(false);
  ASSERT_EQ(program.stream.plans.size(), 1u) << program.stream.planner.note();
  ASSERT_FALSE(program.stream.plans[0].plan.iteration.partial);
  program.stream.deviate();
  const auto batches_until_another = [&] {
    int batches = 0;
    for (; batches < 600 && program.stream.plans.size() == 1; ++batches) {
      program.stream.free(program.stream.malloc(static_cast<std::uint64_t>(kMiB + 512 * batches), 50));
      program.batch(false);
    }
    return batches;
  };
  EXPECT_GT(batches_until_another(), 200);
  ASSERT_EQ(program.stream.plans.size(), 2u) << program.stream.planner.note();
  EXPECT_TRUE(program.stream.plans[1].plan.iteration.partial);
}

}  // namespace
}  // namespace memopt::planner
