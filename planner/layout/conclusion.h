// What a solver that found something answers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

// The largest end of any buffer. O(n).
std::uint64_t height_of(const Problem& problem, std::span<const std::uint64_t> offsets);

// With offsets for all buffers, or for none where the limits were met first. Gives the height, and drops the offsets if
// that is above the capacity. `lower_bound` must be proven. O(n).
Outcome conclude(const Problem& problem, std::vector<std::uint64_t> offsets, std::uint64_t lower_bound,
                 std::string_view solver);

}  // namespace memopt::layout
