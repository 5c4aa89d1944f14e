// Programs whose steps differ by chance: some in a row are like those before now and then, and are no iteration.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stream.h"

namespace memopt::planner {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr int kLayers = 12;

class Steps {
 public:
  Stream stream;

  Steps() {
    for (int i = 0; i < kLayers; ++i) weights_.push_back(stream.malloc(kMiB, 100));
  }

  void step(int batches) {
    for (int batch = 0; batch < batches; ++batch) {
      for (std::uint64_t i = 0; i < kLayers; ++i) make(4 * kMiB + i * 512, i);
    }
    // An optimizer: in its loop, too, no batch is followed by another one at once.
    for (std::uint64_t i = 0; i < 3 * kLayers; ++i) make(kMiB + i * 512, 50 + i);
  }
  std::uint64_t longest() const {
    std::uint64_t longest = 0;
    for (const FoundPlan& plan : stream.plans) longest = std::max(longest, plan.operations);
    return longest;
  }
  static std::uint64_t operations(int batches) { return 3 * kLayers * (static_cast<std::uint64_t>(batches) + 3); }

 private:
  void make(std::uint64_t bytes, std::uint64_t stack) {
    const std::uint64_t block = stream.malloc(bytes, stack, stack);
    stream.launch(static_cast<std::uint32_t>(stack), {weights_[stack % kLayers], block});
    stream.free(block);
  }

  std::vector<std::uint64_t> weights_;
};

TEST(Chance, StepsThatAreLikeThoseBeforeAreNoIteration) {
  Steps program;
  for (const int batches : {2, 2, 2, 2, 2, 1, 2, 4, 2, 4, 1, 4, 1, 2, 1, 1, 2, 4, 2, 4, 1, 2}) program.step(batches);
  ASSERT_FALSE(program.stream.plans.empty()) << program.stream.planner.note();
  EXPECT_EQ(program.longest(), Steps::operations(2));
}

TEST(Chance, WhatGoesOnIsOne) {
  Steps program;
  for (int i = 0; i < 5; ++i) program.step(2);
  for (int i = 0; i < 6; ++i) {
    program.step(1);
    program.step(4);
  }
  EXPECT_EQ(program.longest(), Steps::operations(1) + Steps::operations(4)) << program.stream.planner.note();
}

// A loop within the steps is planned before they are: nothing of it is by chance.
TEST(Chance, StepsOfOneLengthAreOneAtOnce) {
  Steps program;
  for (int i = 0; i < 4; ++i) program.step(4);
  EXPECT_EQ(program.longest(), Steps::operations(4)) << program.stream.planner.note();
}

}  // namespace
}  // namespace memopt::planner
