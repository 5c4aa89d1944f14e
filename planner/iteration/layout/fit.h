// Places buffers one by one into gaps between those placed before whose lifetimes overlap.
//
// SmartPool (Zhang et al. 2019, section IV-B) is size descending with best fit. Where this differs from the published
// code: the gap below the lowest neighbour counts as a gap, offsets have 64 bits, and lifetimes are cyclic.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/iteration/layout/problem.h"

namespace memopt::planner::layout {

enum class Order { kSize, kLifetime, kArea };  // largest first; then longest, then earliest
enum class Gap { kBest, kFirst };              // the smallest that holds the buffer, or the lowest

// Buffers in this order; always the same for the same problem.
std::vector<std::uint32_t> ordered(const Problem& problem, Order order);

// O(n) per buffer, over arrays kept in order of offsets: half a second for 20,000 buffers.
Solution place_in_gaps(const Problem& problem, const std::vector<std::uint32_t>& order, Gap gap);

}  // namespace memopt::planner::layout
