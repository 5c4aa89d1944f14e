// What every solver answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

struct Outcome {
  Solution solution;              // empty offsets: none was found (within the capacity)
  std::uint64_t lower_bound = 0;  // proven: no solution is smaller
  bool optimal = false;           // proven: height == lower_bound, or the search was exhausted
  bool infeasible = false;        // proven: none within the capacity
  std::string_view solver;        // that found it; a literal

  bool found(std::size_t buffers) const { return solution.offsets.size() == buffers; }
};

// Called with each solution that is smaller than the last, from any thread, one at a time.
using OnBetter = std::function<void(const Outcome&)>;

// The largest end of any buffer. O(n).
std::uint64_t height_of(const Problem& problem, std::span<const std::uint64_t> offsets);

// The outcome of a solver that has offsets for all buffers, or for none where the limits were met first. Computes the
// height, and drops the offsets if it is above the capacity. `lower_bound` must be proven. O(n).
Outcome outcome_of(const Problem& problem, std::vector<std::uint64_t> offsets, std::uint64_t lower_bound,
                   std::string_view solver);

// Why a solver that computes with `exponent` bits (below 63) does not support a problem: all sizes with their
// alignments, or the offset of a fixed buffer, come to 2^exponent or more. Nothing if it does. O(n).
std::optional<std::string> unsupported_sums(unsigned exponent, const Problem& problem);

}  // namespace memopt::layout
