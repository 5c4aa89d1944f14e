// An iteration that is found again with its boundary elsewhere keeps its places.
#include "planner/iteration/last_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"

namespace memopt::planner {
namespace {

constexpr std::uint64_t kOperations = 60;

IterationLifetimes random_lifetimes(std::mt19937_64& random, bool crossing) {
  IterationLifetimes lifetimes;
  lifetimes.operations = kOperations;
  LaneMallocs lane{};
  lane.lane = 3;
  lane.parts = 1;
  for (std::uint64_t rank = 0; rank < kOperations; rank += 1 + random() % 4) {
    const std::uint64_t length = 1 + random() % (crossing && random() % 6 == 0 ? 2 * kOperations : kOperations / 3);
    MallocLife malloc{};
    malloc.bytes = 512 * (1 + random() % 40);
    malloc.return_address = random() % 3;
    malloc.born = rank;
    malloc.freed = rank + length;
    malloc.places = static_cast<std::uint32_t>(places_needed(malloc.born, malloc.freed, kOperations));
    if (random() % 8 == 0) malloc.places = 0;
    malloc.always = malloc.places > 1;
    lane.mallocs.push_back(malloc);
  }
  lifetimes.lanes.push_back(std::move(lane));
  return lifetimes;
}

// The same iteration, beginning `cut` operations later.
IterationLifetimes begun_later(const IterationLifetimes& lifetimes, std::uint64_t cut) {
  IterationLifetimes result = lifetimes;
  std::vector<MallocLife>& mallocs = result.lanes[0].mallocs;
  const auto first =
      std::find_if(mallocs.begin(), mallocs.end(), [&](const MallocLife& malloc) { return malloc.born >= cut; });
  std::rotate(mallocs.begin(), first, mallocs.end());
  for (MallocLife& malloc : mallocs) {
    const std::uint64_t length = malloc.freed - malloc.born;
    malloc.born = (malloc.born + kOperations - cut) % kOperations;
    malloc.freed = malloc.born + length;
  }
  return result;
}

IterationPlan planned(const IterationLifetimes& lifetimes, std::uint32_t rounds) {
  IterationPlan plan;
  plan.lifetimes = lifetimes;
  plan.rounds = rounds;
  plan.problem = layout_problem(lifetimes, rounds);
  plan.outcome = layout::solve(plan.problem, {.work = 10'000});
  return plan;
}

TEST(LastPlaces, AreTheSameWhereverTheIterationBegins) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t rounds = round % 3 == 2 ? 3 : 1;
    const IterationLifetimes lifetimes = random_lifetimes(random, true);
    const IterationPlan last = planned(lifetimes, rounds);
    ASSERT_EQ(layout::validate(last.problem, last.outcome.solution), std::nullopt);
    IterationPlan next;
    next.lifetimes = begun_later(lifetimes, random() % kOperations);
    next.rounds = rounds;
    next.problem = layout_problem(next.lifetimes, rounds);
    const auto places = places_of_last(last, next);
    ASSERT_TRUE(places.has_value());
    ASSERT_EQ(layout::validate(next.problem, *places), std::nullopt) << "round " << round;
  }
}

TEST(LastPlaces, ThereAreNoneForOtherMallocs) {
  std::mt19937_64 random(2);
  const IterationLifetimes lifetimes = random_lifetimes(random, false);
  const IterationPlan last = planned(lifetimes, 1);
  for (const auto& change : std::vector<std::function<void(LaneMallocs&)>>{
           [](LaneMallocs& lane) { lane.mallocs[4].bytes += 512; },
           [](LaneMallocs& lane) { lane.mallocs[4].return_address += 10; },
           [](LaneMallocs& lane) { lane.mallocs[4].places = 2; },
           [](LaneMallocs& lane) { lane.mallocs.pop_back(); },
           [](LaneMallocs& lane) { lane.lane = 4; },
       }) {
    IterationPlan next;
    next.lifetimes = lifetimes;
    change(next.lifetimes.lanes[0]);
    EXPECT_FALSE(places_of_last(last, next).has_value());
  }
  IterationPlan next;
  next.lifetimes = lifetimes;
  next.rounds = 2;
  EXPECT_FALSE(places_of_last(last, next).has_value());
}

}  // namespace
}  // namespace memopt::planner
