#include "planner/layout/published/offset_lines.h"

#include <limits>
#include <utility>
#include <vector>

#include "planner/layout/problem/sections.h"
#include "planner/layout/problem/validation.h"
#include "planner/layout/skyline/priorities.h"
#include "planner/layout/skyline/skyline.h"

namespace memopt::layout {
namespace {

std::vector<double> keys_by(LineKey key, const Problem& problem, const Sections& sections) {
  switch (key) {
    case LineKey::kBytes:
      return keys_of(problem, sections, {1, 0});
    case LineKey::kArea:
      return keys_of(problem, sections, {1, 1});
    case LineKey::kLifetime:
      break;
  }
  return lifetimes_of(problem);
}

}  // namespace

Outcome offset_lines(const Problem& problem, const Limits& limits, LineKey key) {
  const Deadline deadline(limits);
  Allowance allowance(deadline, limits.work);
  const Sections sections(problem);
  std::vector<std::uint32_t> priorities;
  rank(problem, sections, keys_by(key, problem, sections), priorities);
  Solution solution;
  Skyline(problem, sections).run(priorities, std::numeric_limits<std::uint64_t>::max(), allowance, solution);
  return outcome_of(problem, std::move(solution.offsets), load_bound(problem), "offset-lines");
}

}  // namespace memopt::layout
