// Places that blocks share: never too few, and not many more than the load.
#include "planner/iteration/pools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"
#include "stream.h"

namespace memopt::planner {
namespace {

// A training step whose optimizer makes each new state before it frees the old one.
struct Optimizer {
  Stream& stream;
  std::vector<std::uint64_t> sizes, weights, first, second;

  Optimizer(Stream& to, std::vector<std::uint64_t> bytes) : stream(to), sizes(std::move(bytes)) {
    for (const std::uint64_t size : sizes) weights.push_back(stream.malloc(size, 100));
    first.assign(sizes.size(), 0);
    second.assign(sizes.size(), 0);
  }
  void step() {
    std::vector<std::uint64_t> activations, gradients;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      activations.push_back(stream.malloc(3 * sizes[i] + 1000, 1));
      stream.launch(1, {weights[i], activations.back()});
    }
    for (std::size_t i = sizes.size(); i-- > 0;) {
      gradients.push_back(stream.malloc(sizes[i], 2));
      stream.launch(2, {weights[i], activations[i], gradients.back()});
      stream.free(activations[i]);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (std::vector<std::uint64_t>* states : {&first, &second}) {
        const std::uint64_t next = stream.malloc(sizes[i], 3);
        stream.launch(3, {weights[i], next});
        if ((*states)[i] != 0) stream.free((*states)[i]);
        (*states)[i] = next;
      }
    }
    for (const std::uint64_t gradient : gradients) stream.free(gradient);
  }
};

TEST(Pools, StatesOfAnOptimizerTakeOnePlaceEachAndOneMore) {
  Stream stream;
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < 24; ++i) sizes.push_back(std::uint64_t{i % 3 == 0 ? 4u : 1u} << 20);
  Optimizer optimizer(stream, sizes);
  for (int i = 0; i < 8; ++i) optimizer.step();
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  const IterationPlan& plan = stream.plans[0].plan;
  ASSERT_TRUE(plan.pools.has_value());
  ASSERT_EQ(plan.pools->pools.size(), 2u);
  EXPECT_EQ(plan.pools->pools[0].bytes, 4u << 20);
  EXPECT_EQ(plan.pools->pools[0].places, 2 * 8 + 1u);
  EXPECT_EQ(plan.pools->pools[1].bytes, 1u << 20);
  EXPECT_EQ(plan.pools->pools[1].places, 2 * 16 + 1u);
  EXPECT_LE(plan.footprint(), plan.lifetimes.peak_load + plan.lifetimes.peak_load / 100);
}

// The equal-sized gradients of one thread cannot be told from each other by who sees their sizes only.
TEST(Pools, MallocsThatLookAlikeLiveAsLongAsTheyDo) {
  Stream stream;
  std::vector<std::uint64_t> weights;
  for (int i = 0; i < 6; ++i) weights.push_back(stream.malloc(4 << 20, 100));
  for (int step = 0; step < 10; ++step) {
    std::vector<std::uint64_t> activations, gradients;
    for (const std::uint64_t weight : weights) {
      activations.push_back(stream.malloc(4 << 20, 1));
      stream.launch(1, {weight, activations.back()});
    }
    stream.lane = 1;
    for (std::size_t i = weights.size(); i-- > 0;) {
      gradients.push_back(stream.malloc(4 << 20, 2));
      stream.launch(2, {weights[i], activations[i], gradients.back()});
      stream.free(activations[i]);
    }
    stream.lane = 0;
    stream.launch(3, weights);
    for (const std::uint64_t gradient : gradients) stream.free(gradient);
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  EXPECT_EQ(stream.plans[0].plan.lifetimes.peak_load, 13u << 22);
  EXPECT_EQ(stream.plans[0].plan.footprint(), 13u << 22);
}

// By definition, rank by rank.
TEST(Pools, HavePlacesForAll) {
  std::mt19937_64 random(7);
  constexpr std::uint64_t kOperations = 50;
  int joined = 0, not_placed = 0;
  for (int round = 0; round < 500; ++round) {
    IterationLifetimes lifetimes;
    lifetimes.operations = kOperations;
    for (std::uint32_t k = 0; k < 1 + random() % 3; ++k) {
      LaneMallocs lane{};
      lane.lane = k;
      lane.parts = random() % 3 == 0 ? 2 : 1;
      const std::uint64_t count = 1 + random() % 12;
      for (std::uint64_t i = 0; i < count * lane.parts; ++i) {
        MallocLife malloc{};
        malloc.bytes = i >= count ? lane.mallocs[i - count].bytes : 512 * (1 + random() % 4);
        malloc.born = random() % kOperations;
        malloc.freed = malloc.born + 1 + random() % (random() % 4 == 0 ? 3 * kOperations : kOperations / 2);
        malloc.places = static_cast<std::uint32_t>(places_needed(malloc.born, malloc.freed, kOperations));
        if (i >= count ? lane.mallocs[i - count].places == 0 : random() % 6 == 0) malloc.places = 0;
        malloc.always = malloc.places > 1;
        lane.mallocs.push_back(malloc);
      }
      lifetimes.lanes.push_back(std::move(lane));
    }
    const Pools pools = choose_pools(lifetimes);
    const layout::Problem problem = pooled_problem(lifetimes, pools);
    ASSERT_EQ(layout::validate(problem, layout::solve(problem, {.work = 2000}).solution), std::nullopt);
    for (std::uint64_t rank = 0; rank < kOperations; ++rank) {
      std::vector<std::uint32_t> live(pools.pools.size(), 0);

      for (std::size_t lane = 0; lane < lifetimes.lanes.size(); ++lane) {
        const std::vector<MallocLife>& mallocs = lifetimes.lanes[lane].mallocs;
        std::vector<std::uint32_t> at_lead(mallocs.size(), 0);
        for (std::size_t i = 0; i < mallocs.size(); ++i) {
          const std::uint32_t pool = pools.of[lane][i];
          if (mallocs[i].places == 0) {
            EXPECT_EQ(pool, Pools::kNoPool);
            ++not_placed;
            continue;
          }
          if (pool != Pools::kNoPool) {
            EXPECT_LE(mallocs[i].bytes, pools.pools[pool].bytes);
            joined += mallocs[i].places == 1 && lifetimes.lanes[lane].parts == 1;
          } else {
            EXPECT_EQ(mallocs[i].places, 1u);
          }
          for (std::uint64_t later = rank; later <= mallocs[i].freed; later += kOperations) {
            if (later < mallocs[i].born) continue;
            if (pool != Pools::kNoPool) {
              ++live[pool];
            } else {
              ++at_lead[pools.leads[lane][i]];
            }
          }
        }
        for (const std::uint32_t count : at_lead) EXPECT_LE(count, 1u);
      }
      for (std::size_t i = 0; i < live.size(); ++i) EXPECT_LE(live[i], pools.pools[i].places);
    }
  }
  EXPECT_GT(joined, 100);
  EXPECT_GT(not_placed, 100);
}

}  // namespace
}  // namespace memopt::planner
