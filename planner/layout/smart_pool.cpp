#include "planner/layout/smart_pool.h"

#include <utility>
#include <vector>

#include "planner/layout/conclusion.h"
#include "planner/layout/hole_fitting.h"
#include "planner/layout/validation.h"

namespace memopt::layout {
namespace {

Outcome smart_pool(const Problem& problem, const Limits& limits, Fit fit, std::string_view name) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) bytes.push_back(buffer.bytes);
  auto offsets = fit_into_holes(problem, largest_first(bytes), bytes, fit, limits);
  return conclude(problem, std::move(offsets), load_bound(problem), name);
}

}  // namespace

Outcome smart_pool_best_fit(const Problem& problem, const Limits& limits) {
  return smart_pool(problem, limits, Fit::kBest, "smartpool-best-fit");
}

Outcome smart_pool_first_fit(const Problem& problem, const Limits& limits) {
  return smart_pool(problem, limits, Fit::kFirst, "smartpool-first-fit");
}

}  // namespace memopt::layout
