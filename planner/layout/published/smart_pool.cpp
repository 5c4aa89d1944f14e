#include "planner/layout/published/smart_pool.h"

#include "planner/layout/problem/validation.h"

namespace memopt::layout {

std::vector<std::uint64_t> smart_pool_offsets(const Problem& problem, Fit fit, const Limits& limits,
                                              const std::function<bool(std::size_t placed)>& stop) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) bytes.push_back(buffer.bytes);
  return place_greedily(problem, largest_first(bytes), bytes, fit, limits, stop);
}

Outcome smart_pool_best_fit(const Problem& problem, const Limits& limits) {
  return outcome_of(problem, smart_pool_offsets(problem, Fit::kBest, limits), load_bound(problem),
                    "smartpool-best-fit");
}

Outcome smart_pool_first_fit(const Problem& problem, const Limits& limits) {
  return outcome_of(problem, smart_pool_offsets(problem, Fit::kFirst, limits), load_bound(problem),
                    "smartpool-first-fit");
}

}  // namespace memopt::layout
