// Internal to planner/layout: which offsets of an earlier solution are still valid, to start from them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

struct KeptPlaces {
  std::vector<std::uint64_t> offsets;    // by buffer; kAnywhere if it has none
  std::vector<std::uint32_t> ascending;  // the buffers that have one, by offset
};

// `previous` without the offsets of buffers that now conflict with another or are not aligned any more; fixed buffers
// have theirs. Of two that conflict, the one with more conflicts is dropped; else the lower one, since the cause is
// more often a larger size than a longer lifetime. O(n log n), of which all but the sorting is about O(n).
KeptPlaces kept_places(const Problem& problem, const Sections& sections, std::span<const std::uint64_t> previous);

}  // namespace memopt::layout
