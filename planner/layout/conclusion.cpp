#include "planner/layout/conclusion.h"

#include <algorithm>
#include <utility>

namespace memopt::layout {

std::uint64_t height_of(const Problem& problem, std::span<const std::uint64_t> offsets) {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + problem.buffers[i].bytes);
  return height;
}

Outcome conclude(const Problem& problem, std::vector<std::uint64_t> offsets, std::uint64_t lower_bound,
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

}  // namespace memopt::layout
