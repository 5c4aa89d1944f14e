#include "planner/layout/conclusion.h"

#include <algorithm>
#include <utility>

namespace memopt::layout {

Outcome conclude(const Problem& problem, std::vector<std::uint64_t> offsets, std::uint64_t lower_bound,
                 std::string_view solver) {
  Outcome outcome;
  outcome.lower_bound = lower_bound;
  outcome.solver = solver;
  outcome.infeasible = problem.capacity && lower_bound > *problem.capacity;
  if (offsets.size() != problem.buffers.size()) return outcome;
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + problem.buffers[i].bytes);
  if (problem.capacity && height > *problem.capacity) return outcome;
  outcome.solution = {std::move(offsets), height};
  outcome.optimal = height == lower_bound;
  return outcome;
}

}  // namespace memopt::layout
