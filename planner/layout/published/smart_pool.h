// SmartPool: Zhang, Yeung, Shu, He, Wang, "Efficient Memory Management for GPU-based Deep Learning Systems" (2019),
// section III: dynamic storage allocation as weighted interval colouring, greedily and the largest buffer first, by
// best fit or first fit.
//
// Beyond the paper: buffers that are needed in several intervals, alignments (a hole must be large enough for the
// aligned buffer), and fixed buffers, which come first. Of equal sizes the first in the problem goes first; of equal
// holes the lowest is taken.
//
// O(n) in placed buffers for each, four an instruction. No solution if the limits were met first; the only bound is the
// load. Threads and seed change nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"
#include "planner/layout/published/greedy_fit.h"

namespace memopt::layout {

Outcome smart_pool_best_fit(const Problem& problem, const Limits& limits);
Outcome smart_pool_first_fit(const Problem& problem, const Limits& limits);

// The offsets alone, for other solvers; `stop` as in greedy_fit.h.
std::vector<std::uint64_t> smart_pool_offsets(const Problem& problem, Fit fit, const Limits& limits,
                                              const std::function<bool(std::size_t placed)>& stop = {});

}  // namespace memopt::layout
