// What a choice costs, computed from the last one and afresh.
#include "planner/swap/evaluation/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "tests/planner/swap/busy_problem.h"

namespace memopt::swap {
namespace {

using testing::allow_clean_drops;
using testing::busy_problem;

// What is computed from the last choice that was kept is what is computed afresh.
TEST(Evaluator, ADifferenceCostsWhatTheWholeDoes) {
  int kept = 0, infinite = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Problem problem = busy_problem(seed);
    if (seed % 2 == 0) allow_clean_drops(problem);
    const Liveness liveness = find_liveness(problem);
    const EvictionCandidates candidates = find_eviction_candidates(problem, liveness);
    ASSERT_GT(candidates.evictions.size(), 60U);
    Evaluator evaluator(problem, liveness, candidates);
    std::mt19937_64 random(seed);
    const auto fraction = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    Choice now = nothing_evicted(candidates);
    for (int k = 0; k < 300; ++k) {
      Choice trial = now;
      const auto below = [&](std::size_t n) { return random() % n; };
      switch (below(4)) {
        case 0:
          // A few again and again: what was given up comes back as it was.
          trial.evicted[below(below(2) == 0 ? 4 : trial.evicted.size())] ^= 1;
          break;
        case 1:
          std::swap(trial.order[below(trial.order.size())], trial.order[below(trial.order.size())]);
          break;
        case 2: {
          const auto at = trial.order.begin() + static_cast<std::ptrdiff_t>(below(trial.order.size()));
          std::rotate(trial.order.begin(), at, at + 1);
          break;
        }
        default:
          trial.delays.assign(1, {below(liveness.operations), fraction() * 20});
          break;
      }
      const double cost = evaluator.attempt(trial, Evaluator::kInfinite);
      Evaluator fresh(problem, liveness, candidates);
      Choice same = trial;
      ASSERT_EQ(cost, fresh.attempt(same, Evaluator::kInfinite)) << seed << ' ' << k;
      ASSERT_EQ(same, trial);
      if (cost == Evaluator::kInfinite) {
        ++infinite;
        continue;
      }
      ASSERT_EQ(evaluator.height(), fresh.height());
      if (below(3) == 0) continue;  // forgotten
      evaluator.keep();
      fresh.keep();
      ++kept;
      for (std::uint32_t i = 0; i < candidates.items.size(); ++i) {
        ASSERT_EQ(evaluator.places(i), fresh.places(i)) << seed << ' ' << k << ' ' << i;
        ASSERT_EQ(evaluator.top(i), fresh.top(i));
        // There may be several that it stands on.
        const std::uint32_t under = evaluator.below(i);
        if (evaluator.places(i).size() == 1) {
          ASSERT_EQ(under == Evaluator::kGround, evaluator.places(i)[0] == 0) << seed << ' ' << k << ' ' << i;
        }
        if (under == Evaluator::kGround) continue;
        ASSERT_LT(evaluator.rank(under), evaluator.rank(i));
        ASSERT_TRUE(conflict(evaluator.residency(under), evaluator.residency(i)));
        if (evaluator.places(i).size() > 1) continue;
        const std::uint64_t unit = evaluator.residency(i).swapped ? problem.chunk : problem.align;
        const auto stands = [&](std::uint64_t at) {
          return std::any_of(evaluator.places(under).begin(), evaluator.places(under).end(), [&](std::uint64_t one) {
            return (one + problem.blocks[candidates.items[under].block].bytes + unit - 1) / unit * unit == at;
          });
        };
        ASSERT_TRUE(std::any_of(evaluator.places(i).begin(), evaluator.places(i).end(), stands)) << seed << ' ' << k;
      }
      now = trial;
    }
  }
  EXPECT_GT(kept, 800);
  RecordProperty("infinite", infinite);
}

}  // namespace
}  // namespace memopt::swap
