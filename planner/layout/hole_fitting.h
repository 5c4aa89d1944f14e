// Placing buffers one after the other into the holes that others leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

enum class Fit { kBest, kFirst };

inline constexpr std::size_t kPlacementsBetweenStops = 64;

// Offsets with every buffer in the given order, `extents[i]` bytes taken for buffer i (at least its own). Fixed buffers
// are placed before, with their own bytes. Empty if the time was up or it was cancelled, or if `stop` says so, which is
// asked every few placements with the number of buffers placed so far.
std::vector<std::uint64_t> fit_into_holes(const Problem& problem, std::span<const std::uint32_t> order,
                                          std::span<const std::uint64_t> extents, Fit fit, const Limits& limits,
                                          const std::function<bool(std::size_t placed)>& stop = {});

// Positions of the buffers, by extent descending; of equal ones the first comes first.
std::vector<std::uint32_t> largest_first(std::span<const std::uint64_t> extents);

}  // namespace memopt::layout
