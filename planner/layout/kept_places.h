// Internal to the room: which places of an earlier solution still hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem.h"
#include "planner/layout/timeline.h"

namespace memopt::layout {

struct KeptPlaces {
  std::vector<std::uint64_t> offsets;    // by buffer; kAnywhere where there is none
  std::vector<std::uint32_t> ascending;  // those that have one, by offset
};

// `previous` without the places of buffers that are in another's way now, or not aligned any more; fixed buffers have
// theirs. Of two in each other's way the one with more such others goes; else the lower one, since it is more often a
// larger size than a longer life that made the difference. O(n log n), of which all but the sorting is O(n) or so.
KeptPlaces kept_places(const Problem& problem, const Timeline& timeline, std::span<const std::uint64_t> previous);

}  // namespace memopt::layout
