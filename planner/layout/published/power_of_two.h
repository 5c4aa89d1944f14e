// Sizes rounded up to powers of two, the largest first, each at the lowest place: Kierstead, "The Linearity of
// First-Fit Coloring of Interval Graphs", SIAM Journal on Discrete Mathematics 1, 1988, which proves a constant factor
// for it. For comparison only: what the rounding costs in practice.
//
// Supports alignments, several intervals and fixed buffers (these are not rounded). Does not support sums of sizes of
// 2^61 or more, which might not be representable when rounded.
#pragma once

#include <optional>
#include <string>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

Outcome power_of_two(const Problem& problem, const Limits& limits);
std::optional<std::string> power_of_two_unsupported(const Problem& problem);

}  // namespace memopt::layout
