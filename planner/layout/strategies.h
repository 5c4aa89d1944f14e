// The strategies that exact search runs side by side. The time that one of them takes differs by orders of magnitude
// from instance to instance, seldom that of all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/layout/placement_tree.h"
#include "planner/layout/sections.h"

namespace memopt::layout {

// The first kStrategies differ in kind: choices and preorders (MiniMalloc's WAT, TAW and TWA are of these). Those after
// them are the same in turn, with noise by seed and number. O(n log n).
inline constexpr std::size_t kStrategies = 8;
Strategy strategy_of(const Sections& sections, std::uint64_t seed, std::uint64_t number);

}  // namespace memopt::layout
