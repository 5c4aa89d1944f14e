// Which periods are taken for iterations, and when; repeats_at_end beside them.
#include "planner/iteration/detection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "planner/iteration/repeats.h"
#include "stream.h"
#include "tests/planner/layout/sanitized.h"

namespace memopt::planner {
namespace {

TEST(RepeatsAtEnd, AgreeWithCountingOneByOne) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::uint64_t> sequence(random() % 40);
    for (auto& value : sequence) value = random() % 3;
    const auto repeats = repeats_at_end(sequence);
    ASSERT_EQ(repeats.size(), sequence.size() + 1);
    for (std::size_t p = 0; p < sequence.size(); ++p) {
      std::size_t same = 0;
      while (same + p < sequence.size() &&
             sequence[sequence.size() - 1 - same] == sequence[sequence.size() - 1 - same - p]) {
        ++same;
      }
      ASSERT_EQ(repeats[p], same) << "period " << p;
    }
  }
}

// Never "no" where something repeats, and "no" nearly always where nothing does; over the ends of chunks too.
TEST(MayRepeat, IsRightAboutWhatDoesNot) {
  std::mt19937 random(2);
  int yes = 0, no = 0, in_vain = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t size = round % 10 == 0 ? 40000 + random() % 10000 : 1 + random() % 200;
    const std::uint64_t symbols = 2 + random() % (round % 3 == 0 ? 3 : 3000);
    std::vector<std::uint64_t> tokens(size);
    for (auto& token : tokens) token = random() % symbols;
    if (round % 2 == 0) {
      const std::size_t part = 1 + random() % (size / 2 + 1);
      for (std::size_t i = size; part * 2 <= size && i-- > size - part;) tokens[i] = tokens[i - part];
      if (random() % 3 == 0) tokens[size - 1 - random() % part] ^= 1;
    }
    LaneOperations operations;
    LaneOperations::Pool pool;
    const std::size_t forgotten = random() % 30000;
    for (std::size_t i = 0; i < forgotten; ++i) operations.append(i, 5, pool);
    operations.forget(forgotten, forgotten, pool);
    for (std::size_t i = 0; i < size; ++i) operations.append(forgotten + i, tokens[i], pool);
    for (const std::size_t count : {size, size / 2, size / 7 + 1}) {
      const std::uint32_t longer_than = random() % 2 == 0 ? 0 : static_cast<std::uint32_t>(random() % (count + 1));
      const auto repeats = repeats_at_end(std::span(tokens).last(count));
      bool any = false;
      for (std::size_t p = std::size_t{longer_than} + 1; p * 2 <= count; ++p) any |= repeats[p] >= p;
      const bool may = may_repeat(operations, count, longer_than);
      ASSERT_TRUE(may || !any) << "round " << round << ", " << count << " of " << size << " above " << longer_than;
      yes += any;
      no += !may;
      in_vain += may && !any;
    }
  }
  EXPECT_GT(yes, 100);
  EXPECT_GT(no, 100);
  EXPECT_LT(in_vain, no / 10);
}

// A training step of a net with `layers` equal layers: activations live until the backward pass, gradients cross into
// the next step and are freed when the new one is there.
struct Training {
  Stream& stream;
  int layers;
  std::uint64_t bytes = 1 << 20;
  std::vector<std::uint64_t> weights, gradients;

  Training(Stream& to, int count) : stream(to), layers(count), gradients(static_cast<std::size_t>(count), 0) {
    for (int i = 0; i < layers; ++i) weights.push_back(stream.malloc(4096, 100));
  }
  void step() {
    std::vector<std::uint64_t> activations{stream.malloc(bytes, 1)};
    for (int i = 0; i < layers; ++i) {
      activations.push_back(stream.malloc(bytes, 2));
      stream.launch(1, {weights[static_cast<std::size_t>(i)], activations[activations.size() - 2], activations.back()});
    }
    for (int i = layers; i-- > 0;) {
      const auto at = static_cast<std::size_t>(i);
      const std::uint64_t gradient = stream.malloc(4096, 3);
      stream.launch(2, {weights[at], activations.back(), gradient});
      stream.free(activations.back());
      activations.pop_back();
      if (gradients[at] != 0) stream.free(gradients[at]);
      gradients[at] = gradient;
    }
    stream.free(activations.back());
    for (int i = 0; i < layers; ++i) {
      stream.launch(3, {weights[static_cast<std::size_t>(i)], gradients[static_cast<std::size_t>(i)]});
    }
  }
  // Malloc and free of the input, and per layer: forward 2, backward 4, update 1.
  std::uint64_t operations() const { return 2 + 7 * static_cast<std::uint64_t>(layers); }
};

TEST(Detection, FindsTheTrainingStepAndNotItsLayers) {
  for (const int layers : {1, 2, 3, 8, 50}) {
    Stream stream;
    Training training(stream, layers);
    for (int prologue = 0; prologue < 10; ++prologue) stream.free(stream.malloc(100 + prologue));
    training.step();  // the first has no old gradients to free
    const std::uint64_t begin = stream.builder.sequence();
    for (int i = 0; i < 8; ++i) training.step();
    ASSERT_EQ(stream.plans.size(), 1u) << layers << " layers: " << stream.planner.note();
    EXPECT_EQ(stream.plans[0].operations, training.operations());
    const std::uint64_t slack = 16 + begin / 64;
    EXPECT_LE(stream.plans[0].at, begin + 5 * training.operations() + slack);
    const IterationLifetimes& lives = stream.plans[0].plan.lifetimes;
    EXPECT_EQ(lives.persistent.size(), training.weights.size());
    EXPECT_EQ(lives.persistent_bytes, 4096u * training.weights.size());
    std::size_t mallocs = 0;
    for (const LaneMallocs& lane : lives.lanes) mallocs += lane.operations.size();
    EXPECT_EQ(mallocs, 1 + 2 * static_cast<std::size_t>(layers));
  }
}

// Parameters hold old addresses in their padding: attention kernels name up to ten more blocks, others each time.
TEST(Detection, StaleWordsForbidNoIteration) {
  Stream stream;
  std::mt19937 random(6);
  std::vector<std::uint64_t> weights;
  for (int i = 0; i < 24; ++i) weights.push_back(stream.malloc(4096, 100));
  const std::uint64_t begin = stream.builder.sequence();
  const int layers = 12;
  std::uint64_t operations = 0;
  for (int step = 0; step < 8; ++step) {
    const std::uint64_t before = stream.builder.sequence();
    std::vector<std::uint64_t> activations{stream.malloc(1 << 20, 1)};
    const auto attention = [&](std::uint32_t function, std::vector<std::uint64_t> named) {
      for (std::size_t stale = 3 + random() % 8; stale > 0; --stale) {
        const auto& from = random() % 3 == 0 ? weights : activations;
        named.push_back(from[random() % from.size()]);
      }
      stream.launch(function, named);
    };
    for (std::size_t i = 0; i < layers; ++i) {
      const std::uint64_t input = activations.back();
      activations.push_back(stream.malloc(3 << 20, 2));
      stream.launch(1, {weights[2 * i], input, activations.back()});
      activations.push_back(stream.malloc(1 << 20, 3));
      attention(2, {activations[activations.size() - 2], activations.back()});
      stream.launch(3, {weights[2 * i + 1], activations.back()});
    }
    for (std::size_t i = layers; i-- > 0;) {
      const std::uint64_t gradient = stream.malloc(2 << 20, 4);
      attention(5, {activations.back(), gradient});
      stream.launch(6, {weights[2 * i + 1], gradient});
      stream.free(activations.back());
      activations.pop_back();
      stream.launch(7, {weights[2 * i], activations.back(), gradient});
      stream.free(activations.back());
      activations.pop_back();
      stream.free(gradient);
    }
    stream.free(activations.back());
    operations = stream.builder.sequence() - before;
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_EQ(stream.plans[0].operations, operations);
  EXPECT_LE(stream.plans[0].at, begin + 5 * operations);
}

// Every kernel of a library names its workspace, too.
TEST(Detection, AWorkspaceOfAllDoesNotMakeLayersEqual) {
  Stream stream;
  std::vector<std::uint64_t> weights;
  const std::uint64_t workspace = stream.malloc(8 << 20, 99);
  for (int i = 0; i < 40; ++i) weights.push_back(stream.malloc(1 << 16, 100));
  for (int pass = 0; pass < 6; ++pass) {
    std::uint64_t input = stream.malloc(1 << 20, 1);
    for (const std::uint64_t weight : weights) {
      const std::uint64_t output = stream.malloc(1 << 20, 2);
      stream.launch(1, {weight, input, output, workspace});
      stream.launch(2, {output});
      stream.free(input);
      input = output;
    }
    stream.free(input);
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_EQ(stream.plans[0].operations, 40u * 4 + 2);
}

TEST(Detection, LayersOfAnInferencePassAreNoIterations) {
  Stream stream;
  std::vector<std::uint64_t> weights;
  for (int i = 0; i < 40; ++i) weights.push_back(stream.malloc(1 << 16, 100));
  constexpr std::uint64_t kPass = 40 * 3 + 2;
  for (int pass = 0; pass < 6; ++pass) {
    std::uint64_t input = stream.malloc(1 << 20, 1);
    for (const std::uint64_t weight : weights) {
      const std::uint64_t output = stream.malloc(1 << 20, 2);
      stream.launch(1, {weight, input, output});
      stream.free(input);
      input = output;
    }
    stream.free(input);
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_EQ(stream.plans[0].operations, kPass);
  EXPECT_LE(stream.plans[0].at, 40 + 5 * kPass);
}

// Weights allocated as regularly as the layers use them: the distance from birth to use is the same for all.
TEST(Detection, EquallySpacedWeightsAreStillDifferentBlocks) {
  Stream stream;
  std::vector<std::uint64_t> weights;
  for (int i = 0; i < 30; ++i) {
    weights.push_back(stream.malloc(1 << 16, 100));
    stream.launch(9, {});
    stream.launch(9, {});
  }
  for (int pass = 0; pass < 5; ++pass) {
    for (const std::uint64_t weight : weights) {
      const std::uint64_t scratch = stream.malloc(1 << 20, 2);
      stream.launch(1, {weight, scratch});
      stream.free(scratch);
    }
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_EQ(stream.plans[0].operations, 90u);
}

TEST(Detection, WhatGrowsIsNoIteration) {
  Stream stream;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t scratch = stream.malloc(1 << 20, 1);
    stream.launch(1, {scratch});
    stream.malloc(4096, 2);  // is kept
    stream.free(scratch);
  }
  EXPECT_TRUE(stream.plans.empty());
}

TEST(Detection, NothingAllocatedIsNoIterationAndSaidSo) {
  Stream stream;
  const std::uint64_t block = stream.malloc(1 << 20);
  for (int i = 0; i < 50; ++i) {
    for (std::uint32_t function = 0; function < 40; ++function) stream.launch(function, {block});
  }
  EXPECT_TRUE(stream.plans.empty());
  EXPECT_NE(stream.planner.note().find("nothing is allocated"), std::string::npos) << stream.planner.note();
}

TEST(Detection, BlocksThatLiveForSeveralIterationsHavePlacesInTurn) {
  Stream stream;
  std::vector<std::uint64_t> history;
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t scratch = stream.malloc(1 << 20, 1);
    history.push_back(stream.malloc(8192, 2));
    stream.launch(1, {scratch, history.back()});
    if (history.size() > 3) {
      stream.free(history.front());
      history.erase(history.begin());
    }
    stream.free(scratch);
  }
  ASSERT_GE(stream.plans.size(), 1u) << stream.planner.note();
  const IterationPlan& plan = stream.plans.back().plan;
  EXPECT_EQ(plan.lifetimes.operations, 5u);
  ASSERT_EQ(plan.lifetimes.lanes.size(), 1u);
  std::vector<std::uint32_t> places;
  for (const MallocLife& malloc : plan.lifetimes.lanes[0].mallocs) places.push_back(malloc.places);
  std::sort(places.begin(), places.end());
  // Freed two operations after the third successor's birth.
  EXPECT_EQ(places, (std::vector<std::uint32_t>{1, 4}));
  EXPECT_TRUE(plan.lifetimes.persistent.empty());
}

// The backward pass runs in a thread of its own, and frees what the first one allocated.
TEST(Detection, TwoLanes) {
  Stream stream;
  std::vector<std::uint64_t> weights;
  for (int i = 0; i < 10; ++i) weights.push_back(stream.malloc(1 << 12, 100));
  std::mt19937 random(3);
  for (int step = 0; step < 9; ++step) {
    std::vector<std::uint64_t> activations;
    stream.lane = 0;
    for (const std::uint64_t weight : weights) {
      activations.push_back(stream.malloc((activations.size() + 1) << 16, 2));
      stream.launch(1, {weight, activations.back()});
    }
    stream.lane = 5;
    for (std::size_t i = weights.size(); i-- > 0;) {
      const std::uint64_t scratch = stream.malloc(1 << 16, 3);
      stream.launch(2, {weights[i], activations[i], scratch});
      // Both threads are at work here, in an order that is another one each time.
      if (random() % 2 == 0) {
        stream.lane = 0;
        stream.launch(4, {});
        stream.lane = 5;
        stream.free(scratch);
      } else {
        stream.free(scratch);
        stream.lane = 0;
        stream.launch(4, {});
        stream.lane = 5;
      }
      stream.free(activations[i]);
    }
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  const IterationPlan& plan = stream.plans[0].plan;
  EXPECT_EQ(plan.lifetimes.operations, 10u * 2 + 10 * 5);
  ASSERT_EQ(plan.lifetimes.lanes.size(), 2u);
  EXPECT_EQ(plan.lifetimes.lanes[0].lane, 0u);
  EXPECT_EQ(plan.lifetimes.lanes[1].lane, 5u);
  EXPECT_EQ(plan.lifetimes.lanes[0].mallocs.size(), 10u);
  EXPECT_EQ(plan.lifetimes.lanes[1].operations.size(), 10u);
  // Ten that look the same, of which one lives at a time.
  EXPECT_EQ(plan.lifetimes.lanes[1].parts, 10u);
  EXPECT_EQ(plan.footprint(), plan.lifetimes.peak_load);
  EXPECT_EQ(plan.lifetimes.persistent.size(), 10u);
}

TEST(Detection, ALaneWithoutPeriodIsLeftOut) {
  Stream stream;
  std::mt19937_64 random(4);
  for (int step = 0; step < 20; ++step) {
    stream.lane = 0;
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t i = 0; i < 20; ++i) blocks.push_back(stream.malloc((i + 1) << 16));
    stream.lane = 1;
    const std::uint64_t odd = stream.malloc(512 + random() % 4096 * 512, 9);
    stream.lane = 0;
    for (const std::uint64_t block : blocks) stream.free(block);
    stream.lane = 1;
    stream.free(odd);
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_EQ(stream.plans[0].operations, 40u);
  EXPECT_EQ(stream.plans[0].plan.lifetimes.lanes.size(), 1u);
}

TEST(Detection, NothingIsPlannedAcrossAGap) {
  Stream stream;
  Training training(stream, 20);
  training.step();
  training.step();
  const std::uint64_t gap = stream.builder.sequence();
  stream.planner.add_gap();
  stream.builder.skip_sequence(5);
  for (int i = 0; i < 8; ++i) training.step();
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_GE(stream.plans[0].plan.lifetimes.first_iteration, gap);
  EXPECT_EQ(stream.plans[0].plan.lifetimes.persistent.size(), 20u);  // named by launches since
}

// k equal steps and a validation pass: the step is planned first, and after two deviations the epoch.
TEST(Detection, AnEpochIsFoundAfterDeviations) {
  Stream stream;
  Training training(stream, 6);
  const auto epoch = [&](bool deviates) {
    for (int i = 0; i < 5; ++i) training.step();
    const std::uint64_t result = stream.malloc(3 << 20, 50);
    if (deviates) stream.deviate();
    for (const std::uint64_t weight : training.weights) stream.launch(60, {weight, result});
    stream.free(result);
  };
  for (int i = 0; i < 8; ++i) epoch(!stream.plans.empty());
  ASSERT_EQ(stream.plans.size(), 2u) << stream.planner.note();
  EXPECT_EQ(stream.plans[0].operations, training.operations());
  EXPECT_EQ(stream.plans[1].operations, 5 * training.operations() + 8);
}

TEST(Detection, WithoutDeviationsTheStepStays) {
  Stream stream;
  Training training(stream, 12);
  for (int i = 0; i < 60; ++i) training.step();
  EXPECT_EQ(stream.plans.size(), 1u);
}

TEST(Detection, LargerSizesAreAnotherIteration) {
  Stream stream;
  Training training(stream, 12);
  for (int i = 0; i < 10; ++i) training.step();
  ASSERT_EQ(stream.plans.size(), 1u);
  training.bytes *= 2;
  const std::uint64_t changed = stream.builder.sequence();
  for (int i = 0; i < 8; ++i) training.step();
  ASSERT_EQ(stream.plans.size(), 2u);
  EXPECT_EQ(stream.plans[1].operations, training.operations());
  EXPECT_GT(stream.plans[1].plan.lifetimes.peak_load, stream.plans[0].plan.lifetimes.peak_load);
  EXPECT_LE(stream.plans[1].at, changed + 5 * training.operations() + 32);
  // Back to what was planned before: not again.
  training.bytes /= 2;
  for (int i = 0; i < 8; ++i) training.step();
  EXPECT_EQ(stream.plans.size(), 2u);
}

// The planned places are large enough for them. Where they go on, they are what the program does.
TEST(Detection, SmallerSizesAreNoOtherIterationForLong) {
  Stream stream;
  Training training(stream, 12);
  const std::uint64_t largest = training.bytes;
  for (int i = 0; i < 10; ++i) training.step();
  ASSERT_EQ(stream.plans.size(), 1u);
  for (int i = 0; i < 12; ++i) {
    // Two batches of other sizes in turn, and one of them alone.
    training.bytes = i < 8 && i % 2 == 0 ? largest / 2 : largest / 4;
    stream.deviate();
    training.step();
  }
  EXPECT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  for (int i = 0; i < 30; ++i) training.step();
  ASSERT_EQ(stream.plans.size(), 2u);
  EXPECT_EQ(stream.plans[1].operations, training.operations());
  EXPECT_LT(stream.plans[1].plan.lifetimes.peak_load, stream.plans[0].plan.lifetimes.peak_load);
}

// Any short sequence, repeated often enough, whose blocks are all freed within it: the period found is the shortest one
// of the tokens, as found by trying all.
TEST(Detection, AgreesWithTryingAllPeriods) {
  std::mt19937 random(5);
  int found = 0;
  for (int round = 0; round < layout::rounds(300); ++round) {
    std::vector<std::uint32_t> pattern;  // malloc of size class, else free of the oldest
    int open = 0;
    const std::size_t pairs = 1 + random() % 12;
    for (std::size_t mallocs = 0; mallocs < pairs || open > 0;) {
      if (mallocs < pairs && (open == 0 || random() % 2 == 0)) {
        pattern.push_back(1 + random() % 2);
        ++mallocs;
        ++open;
      } else {
        pattern.push_back(0);
        --open;
      }
    }
    std::size_t shortest = pattern.size();
    for (std::size_t p = 1; p < pattern.size(); ++p) {
      bool same = pattern.size() % p == 0;
      for (std::size_t i = 0; i < pattern.size() && same; ++i) same = pattern[i] == pattern[(i + p) % pattern.size()];
      if (same) {
        shortest = p;
        break;
      }
    }
    Stream stream;
    std::vector<std::uint64_t> live;
    for (int repeat = 0; repeat < 40; ++repeat) {
      for (const std::uint32_t what : pattern) {
        if (what != 0) {
          live.push_back(stream.malloc(what << 20));
        } else {
          stream.free(live.front());
          live.erase(live.begin());
        }
      }
    }
    ASSERT_GE(stream.plans.size(), 1u);
    // Inner loops that repeat by chance may have been planned before.
    found += stream.plans.size() == 1;
    EXPECT_EQ(stream.plans.back().operations, shortest);
  }
  EXPECT_GT(found, layout::rounds(150));
}

}  // namespace
}  // namespace memopt::planner
