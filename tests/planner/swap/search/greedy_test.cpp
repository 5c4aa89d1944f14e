// What a greedy choice takes from the peak.
#include "planner/swap/search/greedy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/swap/evaluation/evaluator.h"
#include "tests/planner/swap/layers.h"

namespace memopt::swap {
namespace {

// Nothing waits, and the load is lower.
TEST(Greedy, TakesFromThePeakWhatCanBeBackInTime) {
  const Problem problem = testing::layers(100, 4096);
  const Liveness liveness = find_liveness(problem);
  CandidateLimits every;
  every.least_bytes = 0;
  const EvictionCandidates candidates = find_eviction_candidates(problem, liveness, every);
  Choice none = nothing_evicted(candidates);
  const Choice chosen = greedy(problem, liveness, candidates, none);
  EXPECT_GT(std::count(chosen.evicted.begin(), chosen.evicted.end(), 1), 20);
  Evaluator load(problem, liveness, candidates, Evaluator::Places::kNone);
  Choice same = chosen;
  ASSERT_NE(load.attempt(same, Evaluator::kInfinite), Evaluator::kInfinite);
  EXPECT_EQ(same, chosen) << "some copies are late";
  EXPECT_LT(static_cast<double>(load.height()), 0.85 * static_cast<double>(liveness.peak));
}

// What was chosen until it is told to end is what is there.
TEST(Greedy, EndsWhenItIsTold) {
  const Problem problem = testing::layers(100, 4096);
  const Liveness liveness = find_liveness(problem);
  CandidateLimits every;
  every.least_bytes = 0;
  const EvictionCandidates candidates = find_eviction_candidates(problem, liveness, every);
  const Choice none = nothing_evicted(candidates);
  const auto used = [&](int rounds) {
    const Choice chosen = greedy(problem, liveness, candidates, none, [&rounds] { return rounds-- == 0; });
    return std::count(chosen.evicted.begin(), chosen.evicted.end(), 1);
  };
  EXPECT_EQ(used(0), 0);
  EXPECT_EQ(used(1), 1);
  EXPECT_LT(used(3), used(1000));
}

}  // namespace
}  // namespace memopt::swap
