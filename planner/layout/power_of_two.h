// Sizes rounded up to powers of two, the largest first, each at the lowest place: Kierstead, "The Linearity of
// First-Fit Coloring of Interval Graphs" (1988), which proves a constant factor for it. For comparison only: what the
// rounding costs in practice.
//
// Takes alignments, several intervals and fixed buffers (these are not rounded). Refuses sums of sizes of 2^61 or more,
// rounded they might not be representable.
#pragma once

#include <optional>
#include <string>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

Outcome power_of_two(const Problem& problem, const Limits& limits);
std::optional<std::string> power_of_two_refuses(const Problem& problem);

}  // namespace memopt::layout
