// Internal to planner/layout: what is known about all solutions of a problem without a search.
#pragma once

#include <cstdint>

#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

// A lower bound of the height; at least the load. Sees
// - alignments: where all offsets are multiples of some g, each buffer but the topmost takes whole multiples of g;
// - fixed offsets: a buffer must go into a hole that the fixed ones leave, or above them.
// O(n log n), besides O(n * fixed) at most `most_pairs`, beyond which fixed offsets are ignored.
std::uint64_t lower_bound_of(const Problem& problem, const Sections& sections,
                             std::uint64_t most_pairs = std::uint64_t{1} << 24);

// The trivial upper bound: one buffer on top of the other, above all that is fixed, in the order of
// the problem. O(n).
Solution stacked(const Problem& problem);

// The largest unit of which all offsets that matter are multiples: buffers rest on others, on fixed ones, or on a
// multiple of their alignment. At least 1.
std::uint64_t unit_of(const Problem& problem);

}  // namespace memopt::layout
