// Lifetimes, boundary, places in turn and the match length of planned lanes.
#include "planner/iteration/lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "planner/iteration/plan_bytes.h"
#include "planner/layout/problem/validation.h"
#include "stream.h"

namespace memopt::planner {
namespace {

// By definition, one by one.
std::size_t counted_match(const std::vector<std::uint64_t>& sequence) {
  const std::size_t n = sequence.size();
  std::size_t inner = n;
  for (std::size_t d = n; d-- > 1;) {
    bool same = n % d == 0;
    for (std::size_t i = 0; i < n && same; ++i) same = sequence[i] == sequence[(i + d) % n];
    if (same) inner = d;
  }
  for (std::size_t length = 1; length < n; ++length) {
    bool elsewhere = false;
    for (std::size_t shift = 1; shift < n; ++shift) {
      if (shift % inner == 0) continue;
      bool same = true;
      for (std::size_t k = 0; k < length && same; ++k)
        same = sequence[n - 1 - k] == sequence[(2 * n - 1 - k - shift) % n];
      elsewhere = elsewhere || same;
    }
    if (!elsewhere) return length;
  }
  return n;
}

TEST(MatchLength, AgreesWithItsDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> sequence(1 + random() % 12);
    for (auto& value : sequence) value = random() % 2;
    ASSERT_EQ(match_length(sequence), counted_match(sequence));
  }
  EXPECT_EQ(match_length({4}), 1u);
  EXPECT_EQ(match_length({4, 4, 4}), 1u);
  EXPECT_EQ(match_length({1, 2, 1, 3}), 1u);
  EXPECT_EQ(match_length({2, 1, 3, 1}), 2u);
}

TEST(InnerPeriod, IsTheShortestWholePart) {
  EXPECT_EQ(inner_period({1}), 1u);
  EXPECT_EQ(inner_period({1, 1, 1}), 1u);
  EXPECT_EQ(inner_period({1, 2, 1, 2}), 2u);
  EXPECT_EQ(inner_period({1, 2, 1}), 3u);
}

TEST(PlacesNeeded, APlaceIsFreeAgainWhenItsTurnComes) {
  for (std::uint64_t operations = 1; operations < 8; ++operations) {
    for (std::uint64_t born = 0; born < operations; ++born) {
      for (std::uint64_t freed = born + 1; freed < 40; ++freed) {
        const std::uint64_t k = places_needed(born, freed, operations);
        EXPECT_GT(born + k * operations, freed);
        EXPECT_LE(born + (k - 1) * operations, freed);
      }
    }
  }
}

// Three blocks of different size with lifetimes that are known, cut where only the smallest lives.
TEST(Lifetimes, OfAKnownIteration) {
  Stream stream;
  const std::uint64_t weight = stream.malloc(1000, 9);
  std::uint64_t small = 0;
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t large = stream.malloc(1 << 20, 1);
    stream.launch(1, {weight, large});
    if (small != 0) stream.free(small);
    const std::uint64_t middle = stream.malloc(1 << 19, 2);
    stream.launch(2, {large, middle});
    stream.free(large);
    small = stream.malloc(700, 3);
    stream.launch(3, {middle, small});
    stream.free(middle);
    stream.launch(4, {weight, small});
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  const IterationPlan& plan = stream.plans[0].plan;
  const IterationLifetimes& lives = plan.lifetimes;
  EXPECT_EQ(lives.operations, 10u);
  EXPECT_EQ(lives.crossing_bytes, 700u);
  EXPECT_EQ(lives.persistent_bytes, 1000u);
  EXPECT_EQ(lives.peak_load, 1000u + (1 << 20) + (1 << 19));
  ASSERT_EQ(lives.lanes.size(), 1u);
  ASSERT_EQ(lives.lanes[0].mallocs.size(), 3u);
  const auto& mallocs = lives.lanes[0].mallocs;
  EXPECT_EQ(mallocs[0].bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(mallocs[0].freed - mallocs[0].born, 5u);
  EXPECT_EQ(mallocs[1].bytes, std::uint64_t{1} << 19);
  EXPECT_EQ(mallocs[1].freed - mallocs[1].born, 5u);
  EXPECT_EQ(mallocs[2].bytes, 700u);
  EXPECT_EQ(mallocs[2].freed - mallocs[2].born, 6u);
  for (const MallocLife& malloc : mallocs) EXPECT_EQ(malloc.places, 1u);
  // The small one lives with each of the others, which live together: three above each other, though never all at once.
  EXPECT_EQ(layout::load_bound(plan.problem), (1u << 20) + (1u << 19));
  EXPECT_EQ(plan.outcome.lower_bound, plan.outcome.solution.height) << "proven by exhausting what is smaller";
  EXPECT_EQ(plan.outcome.solution.height, (1u << 20) + (1u << 19) + 1024);
}

// Garbage is collected in another order each time; equal blocks, so the tokens are the same.
TEST(Lifetimes, AreTheUnionOverBothRepeats) {
  Stream stream;
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t first = stream.malloc(1 << 20, 1), second = stream.malloc(1 << 20, 1);
    const std::uint64_t third = stream.malloc(1 << 18, 2);
    stream.launch(1, {first, second, third});
    stream.free(i % 2 == 0 ? first : second);
    stream.launch(2, {third});
    stream.free(i % 2 == 0 ? second : first);
    stream.free(third);
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  const auto& mallocs = stream.plans[0].plan.lifetimes.lanes[0].mallocs;
  ASSERT_EQ(mallocs.size(), 3u);
  EXPECT_EQ(mallocs[0].freed - mallocs[0].born, 6u);
  EXPECT_EQ(mallocs[1].freed - mallocs[1].born, 5u);
}

// Two equal halves that differ in launches only: whoever sees the mallocs cannot tell them from each other.
TEST(Lifetimes, MallocsThatLookTheSameShareTheirPlaces) {
  for (const bool pools : {true, false}) {
    IterationPlanner::Options options;
    options.planning.pools = pools;
    Stream stream(options);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t a = stream.malloc(1 << 20);
      stream.launch(1, {a});
      const std::uint64_t b = stream.malloc(1 << 20);
      stream.launch(2, {a, b});
      stream.free(a);
      stream.free(b);
    }
    ASSERT_GE(stream.plans.size(), 1u) << stream.planner.note();
    const IterationPlan& plan = stream.plans.back().plan;
    const LaneMallocs& lane = plan.lifetimes.lanes.at(0);
    EXPECT_EQ(lane.parts, 2u);
    EXPECT_EQ(lane.match, 1u);
    EXPECT_EQ(plan.outcome.solution.height, std::uint64_t{2} << 20);
    ASSERT_EQ(plan.pools.has_value(), pools);
    if (pools) {
      ASSERT_EQ(plan.pools->pools.size(), 1u);
      EXPECT_EQ(plan.pools->pools[0].places, 2u);
    } else {
      ASSERT_EQ(lane.mallocs.size(), 1u);
      EXPECT_EQ(lane.mallocs[0].places, 2u);
      EXPECT_TRUE(lane.mallocs[0].always);
    }
  }
}

// Batches that are accumulated, and an optimizer that allocates nothing.
TEST(Lifetimes, PartsAreToldByTheOperationsBetweenThem) {
  for (const int batches : {2, 4}) {
    for (const bool optimizes : {true, false}) {
      Stream stream;
      const std::uint64_t weights = stream.malloc(1 << 20, 9, 70);
      const std::uint64_t gradients = stream.malloc(1 << 20, 9, 71);
      for (int i = 0; i < 30; ++i) {
        for (int batch = 0; batch < batches; ++batch) {
          const std::uint64_t a = stream.malloc(3 << 20, 1, 8);
          stream.launch(1, {weights, a});
          const std::uint64_t b = stream.malloc(2 << 20, 2, 9);
          stream.launch(2, {a, b});
          stream.launch(batch == 0 ? 3 : 4, {b, gradients});
          stream.free(b);
          stream.free(a);
        }
        for (int step = 0; step < 3 && optimizes; ++step) stream.launch(5, {gradients, weights});
      }
      ASSERT_GE(stream.plans.size(), 1u) << stream.planner.note();
      const IterationPlan& plan = stream.plans.back().plan;
      const LaneMallocs& lane = plan.lifetimes.lanes.at(0);
      if (!optimizes) {
        EXPECT_TRUE(lane.gaps.empty());
        continue;
      }
      const auto parts = static_cast<std::size_t>(batches);
      EXPECT_EQ(lane.parts, 1u);
      ASSERT_EQ(lane.mallocs.size(), 2 * parts);
      ASSERT_EQ(lane.gaps.size(), 2 * parts);
      std::vector<std::uint64_t> sorted = lane.gaps;
      std::sort(sorted.begin(), sorted.end());
      std::vector<std::uint64_t> expected(parts, 1);
      expected.insert(expected.end(), parts - 1, 2);
      expected.push_back(5);
      EXPECT_EQ(sorted, expected);
      const PlanParts parts_of_plan = plan_parts(plan, {});
      for (std::size_t i = 0; i < 2 * parts; ++i) EXPECT_EQ(parts_of_plan.mallocs[i].gap, lane.gaps[i]);
    }
  }
}

// Where blocks outlive an iteration, two planned as one need no more than what lives at once.
TEST(Lifetimes, UnrolledTheyNeedNoSecondPlaceAllTheTime) {
  IterationPlanner::Options options;
  for (const bool unroll : {false, true}) {
    options.planning.unroll = unroll;
    options.planning.pools = false;
    Stream stream(options);
    std::uint64_t gradient = 0;
    for (int i = 0; i < 10; ++i) {
      const std::uint64_t activation = stream.malloc(1 << 20, 1);
      stream.launch(1, {activation});
      stream.free(activation);
      const std::uint64_t next = stream.malloc(1 << 20, 2);
      if (gradient != 0) stream.free(gradient);
      gradient = next;
      stream.launch(2, {gradient});
    }
    ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
    const IterationPlan& plan = stream.plans[0].plan;
    EXPECT_EQ(plan.rounds, unroll ? 2u : 1u);
    EXPECT_EQ(plan.outcome.solution.height, std::uint64_t{unroll ? 2u : 3u} << 20);
  }
}

}  // namespace
}  // namespace memopt::planner
