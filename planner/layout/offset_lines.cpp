#include "planner/layout/offset_lines.h"

#include <limits>
#include <utility>
#include <vector>

#include "planner/layout/conclusion.h"
#include "planner/layout/priorities.h"
#include "planner/layout/skyline.h"
#include "planner/layout/timeline.h"
#include "planner/layout/validation.h"
#include "planner/layout/watch.h"

namespace memopt::layout {
namespace {

std::vector<double> keys_by(LineKey key, const Problem& problem, const Timeline& timeline) {
  switch (key) {
    case LineKey::kBytes:
      return keys_of(problem, timeline, {1, 0});
    case LineKey::kArea:
      return keys_of(problem, timeline, {1, 1});
    case LineKey::kLifetime:
      break;
  }
  return lifetimes_of(problem);
}

}  // namespace

Outcome offset_lines(const Problem& problem, const Limits& limits, LineKey key) {
  const Watch watch(limits);
  Allowance allowance(watch, limits.work);
  const Timeline timeline(problem);
  std::vector<std::uint32_t> priorities;
  rank(problem, timeline, keys_by(key, problem, timeline), priorities);
  Solution solution;
  Skyline(problem, timeline).run(priorities, std::numeric_limits<std::uint64_t>::max(), allowance, solution);
  return conclude(problem, std::move(solution.offsets), load_bound(problem), "offset-lines");
}

}  // namespace memopt::layout
