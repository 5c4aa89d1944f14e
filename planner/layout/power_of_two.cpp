#include "planner/layout/power_of_two.h"

#include <bit>
#include <utility>
#include <vector>

#include "planner/layout/conclusion.h"
#include "planner/layout/hole_fitting.h"
#include "planner/layout/refusal.h"
#include "planner/layout/validation.h"

namespace memopt::layout {

std::optional<std::string> power_of_two_refuses(const Problem& problem) { return refuse_sums_from(61, problem); }

Outcome power_of_two(const Problem& problem, const Limits& limits) {
  std::vector<std::uint64_t> extents;
  extents.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) extents.push_back(std::bit_ceil(buffer.bytes));
  auto offsets = fit_into_holes(problem, largest_first(extents), extents, Fit::kFirst, limits);
  return conclude(problem, std::move(offsets), load_bound(problem), "power-of-two");
}

}  // namespace memopt::layout
