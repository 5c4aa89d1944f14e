// SmartPool: Zhang, Yeung, Shu, He, Wang, "Efficient Memory Management for GPU-based Deep Learning Systems" (2019),
// section III: offline storage allocation as weighted interval colouring. The largest buffer first; each goes into a
// hole that the buffers placed before leave for its whole lifetime, or on top of them. Best fit takes the smallest hole
// that is large enough, first fit the lowest.
//
// Beyond the paper: buffers that are needed in several intervals, alignments (a hole must be large enough for the
// aligned buffer), and fixed buffers, which come first. Of equal sizes the first in the problem goes first; of equal
// holes the lowest is taken.
//
// O(n) in placed buffers for each, at four an instruction. No answer if the limits were met first; never a proof beyond
// the load. Threads and seed change nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/layout/hole_fitting.h"
#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

Outcome smart_pool_best_fit(const Problem& problem, const Limits& limits);
Outcome smart_pool_first_fit(const Problem& problem, const Limits& limits);

// The offsets alone, for other solvers; `stop` as in hole_fitting.h.
std::vector<std::uint64_t> smart_pool_offsets(const Problem& problem, Fit fit, const Limits& limits,
                                              const std::function<bool(std::size_t placed)>& stop = {});

}  // namespace memopt::layout
