#include "planner/layout/published/power_of_two.h"

#include <bit>
#include <utility>
#include <vector>

#include "planner/layout/problem/validation.h"
#include "planner/layout/published/greedy_fit.h"

namespace memopt::layout {

std::optional<std::string> power_of_two_unsupported(const Problem& problem) { return unsupported_sums(61, problem); }

Outcome power_of_two(const Problem& problem, const Limits& limits) {
  std::vector<std::uint64_t> extents;
  extents.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) extents.push_back(std::bit_ceil(buffer.bytes));
  auto offsets = place_greedily(problem, largest_first(extents), extents, Fit::kFirst, limits);
  return outcome_of(problem, std::move(offsets), load_bound(problem), "power-of-two");
}

}  // namespace memopt::layout
