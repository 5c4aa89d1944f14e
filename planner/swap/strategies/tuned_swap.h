// AutoSwap by a weighted sum of its four scores, the weights being tuned by Bayesian optimisation (Zhang et al. 2019,
// section IV-C: weights in [-1, 1], standardised scores, a Gaussian process with an RBF kernel and expected
// improvement, some dozens of evaluations from a random start). Each evaluation plans and simulates.
//
// Different from the paper: the first four evaluations are the scores by themselves, so that no single score, planned
// with the same limits, gives a better plan (as far as the limits are work, not time, of which a plan may get less).
//
// Needs Eigen; a library of its own (memopt_swap_tuned). Thread-safe: nothing is kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "planner/layout/problem/limits.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/strategies/auto_swap.h"

namespace memopt::swap {

struct TuningOptions {
  std::size_t evaluations = 40;  // at least 1; orders of candidates that were planned before count, but cost nothing
  std::size_t at_random = 6;     // of them, after the single scores and before the first model
  std::uint64_t seed = 1;
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();  // no evaluation begins behind it but the first
};

struct TunedPlan {
  AutoSwapPlan plan;
  double added_ns = 0;  // of a feasible plan
  Weights weights{};
  std::size_t evaluations = 0;
  std::size_t planned = 0;  // different orders of candidates
};

// With a limit: the least added time, then the least footprint, within it; stops where nothing is added. Without one:
// the least footprint at no more than 0.1 % added time. Where nothing fits: the smallest that was found. `limits` are
// for each layout that is tried, of which an evaluation tries O(c), c candidates.
TunedPlan tuned_swap(const Problem& problem, const Liveness& liveness, const layout::Limits& limits,
                     const TuningOptions& options = {});

}  // namespace memopt::swap
