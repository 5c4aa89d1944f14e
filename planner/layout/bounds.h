// Internal to the room: lower bounds of the height that see more than the load.
#pragma once

#include <cstdint>

#include "planner/layout/problem.h"
#include "planner/layout/timeline.h"

namespace memopt::layout {

// At least the load. Sees
// - alignments: where all offsets are multiples of some g, each buffer but the topmost takes whole multiples of g;
// - fixed places: a buffer must go into a hole that the fixed ones leave, or above them.
// O(n log n), besides O(n * fixed) at most `most_pairs`, beyond which fixed places are not looked at.
std::uint64_t lower_bound_of(const Problem& problem, const Timeline& timeline,
                             std::uint64_t most_pairs = std::uint64_t{1} << 24);

}  // namespace memopt::layout
