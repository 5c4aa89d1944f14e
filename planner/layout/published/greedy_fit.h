// Greedy placement by best fit or first fit: one buffer after the other, each into a hole that those placed before
// leave for its whole lifetime, or on top of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

enum class Fit {
  kBest,   // the smallest hole that is large enough
  kFirst,  // the lowest
};

inline constexpr std::size_t kPlacementsBetweenStops = 64;
// What these cost with so many buffers placed already, in steps of Limits::work.
constexpr std::uint64_t steps_between_stops(std::size_t placed) { return 1 + placed / 6; }

// Offsets of all buffers, placed in the given order; buffer i takes `extents[i]` bytes (at least its own). Fixed
// buffers are placed before, with their own bytes. Empty if the time was up, if it was cancelled, or if `stop` returned
// true, which is called every few placements with the number of buffers placed so far.
std::vector<std::uint64_t> place_greedily(const Problem& problem, std::span<const std::uint32_t> order,
                                          std::span<const std::uint64_t> extents, Fit fit, const Limits& limits,
                                          const std::function<bool(std::size_t placed)>& stop = {});

// The buffers by extent, descending; of equal ones the first in the problem comes first.
std::vector<std::uint32_t> largest_first(std::span<const std::uint64_t> extents);

}  // namespace memopt::layout
