// Internal to the room: which places of an earlier solution still hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem.h"
#include "planner/layout/timeline.h"

namespace memopt::layout {

// `previous` without the places of buffers that are in another's way now, or not aligned any more; fixed buffers have
// theirs. Of two in each other's way the one with more such others goes; else the lower one, since it is more often a
// larger size than a longer life that made the difference. O(n log n).
std::vector<std::uint64_t> kept_places(const Problem& problem, const Timeline& timeline,
                                       std::span<const std::uint64_t> previous);

}  // namespace memopt::layout
