#include "planner/iteration/layout/portfolio.h"

#include <algorithm>

#include "planner/iteration/layout/fit.h"
#include "planner/iteration/layout/offset_lines.h"
#include "planner/iteration/layout/validation.h"

namespace memopt::planner::layout {
namespace {

// Above this the quadratic heuristics take too long.
constexpr std::size_t kMostForGaps = 60000;

}  // namespace

Outcome solve(const Problem& problem, const Heuristics& heuristics) {
  Outcome outcome;
  outcome.lower_bound = lower_bound(problem);
  const std::uint64_t count = problem.buffers.size();
  const std::uint64_t quadratic = count * count / 2;
  std::uint64_t left = heuristics.budget;
  bool any = false;
  const auto done = [&] { return any && outcome.solution.bytes == outcome.lower_bound; };
  const auto offer = [&](Solution solution, std::string_view name) {
    if (solution.offsets.size() != count) return;
    if (any && solution.bytes >= outcome.solution.bytes) return;
    any = true;
    outcome.solution = std::move(solution);
    outcome.heuristic = name;
  };
  const auto gaps = [&](Order order, Gap gap, std::string_view name) {
    if (done() || (any && quadratic > left)) return;
    left -= std::min(left, quadratic);
    offer(place_in_gaps(problem, ordered(problem, order), gap), name);
  };
  const auto lines = [&](LineKey key, std::string_view name) {
    if (done()) return;
    const std::uint64_t share = left / 4;
    left -= share;
    offer(place_on_lines(problem, key, share), name);
  };
  if (heuristics.smart_pool && count <= kMostForGaps) gaps(Order::kSize, Gap::kBest, "size, best fit");
  if (heuristics.offset_lines) {
    lines(LineKey::kLifetime, "offset lines by lifetime");
    lines(LineKey::kSize, "offset lines by size");
    lines(LineKey::kArea, "offset lines by area");
  }
  if (heuristics.other_orders && count <= kMostForGaps) {
    gaps(Order::kLifetime, Gap::kFirst, "lifetime, first fit");
    gaps(Order::kArea, Gap::kBest, "area, best fit");
    gaps(Order::kSize, Gap::kFirst, "size, first fit");
    gaps(Order::kLifetime, Gap::kBest, "lifetime, best fit");
    gaps(Order::kArea, Gap::kFirst, "area, first fit");
  }
  // Too large for everything: one above the other where nothing better was found.
  if (!any) {
    Solution stack;
    for (const Buffer& buffer : problem.buffers) {
      stack.offsets.push_back(stack.bytes);
      stack.bytes += buffer.bytes;
    }
    offer(std::move(stack), "one above the other");
  }
  return outcome;
}

}  // namespace memopt::planner::layout
