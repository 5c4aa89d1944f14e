#include "planner/layout/problem/outcome.h"

#include <algorithm>
#include <utility>

namespace memopt::layout {

std::uint64_t height_of(const Problem& problem, std::span<const std::uint64_t> offsets) {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + problem.buffers[i].bytes);
  return height;
}

Outcome outcome_of(const Problem& problem, std::vector<std::uint64_t> offsets, std::uint64_t lower_bound,
                   std::string_view solver) {
  Outcome outcome;
  outcome.lower_bound = lower_bound;
  outcome.solver = solver;
  outcome.infeasible = problem.capacity && lower_bound > *problem.capacity;
  if (offsets.size() != problem.buffers.size()) return outcome;
  const std::uint64_t height = height_of(problem, offsets);
  if (problem.capacity && height > *problem.capacity) return outcome;
  outcome.solution = {std::move(offsets), height};
  outcome.optimal = height == lower_bound;
  return outcome;
}

std::optional<std::string> unsupported_sums(unsigned exponent, const Problem& problem) {
  const std::uint64_t limit = std::uint64_t{1} << exponent;
  std::uint64_t sum = 0;
  for (const Buffer& buffer : problem.buffers) {
    sum += buffer.bytes + buffer.alignment;
    if (sum >= limit || (buffer.fixed != kAnywhere && buffer.fixed >= limit)) {
      return "its sizes add up to 2^" + std::to_string(exponent) + " or more";
    }
  }
  return {};
}

}  // namespace memopt::layout
