#include "planner/recompute/bounds/linear_bound.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/recompute/bounds/bound.h"
#include "planner/recompute/bounds/contents.h"
#include "planner/recompute/bounds/relaxation.h"

namespace memopt::recompute {
namespace {

using Clock = std::chrono::steady_clock;

// Of the budget; so much more counts as within it.
constexpr double kNoticed = 1e-6;
// Of a programme, as far as its size is known before: instants times contents and launches. There is room for their
// numbers then.
constexpr std::size_t kMostColumns = std::size_t{1} << 25;

// At most one between two instants, the highest first.
std::vector<std::uint32_t> more_instants(const std::vector<std::uint32_t>& instants, const std::vector<double>& loads,
                                         double budget, std::size_t most) {
  std::vector<std::pair<double, std::uint32_t>> found;
  std::size_t next = 0;
  std::pair<double, std::uint32_t> highest{0, 0};
  const auto close = [&] {
    if (highest.first > budget * (1 + kNoticed)) found.push_back(highest);
    highest = {0, 0};
  };
  for (std::uint32_t l = 0; l < loads.size(); ++l) {
    if (next < instants.size() && instants[next] == l) {
      close();
      ++next;
      continue;
    }
    if (loads[l] > highest.first) highest = {loads[l], l};
  }
  close();
  const std::size_t count = std::min(most, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end(),
                    [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::uint32_t> result = instants;
  for (std::size_t k = 0; k < count; ++k) result.push_back(found[k].second);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

LinearBound linear_least_added_ns(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                  std::uint64_t budget, const LinearBoundLimits& limits,
                                  const std::function<void(const LinearBound&)>& report) {
  const auto begin = Clock::now();
  const auto left = [&] { return limits.seconds - std::chrono::duration<double>(Clock::now() - begin).count(); };
  LinearBound best;
  best.ns = least_added_ns(problem, liveness, graph, budget, [&] { return left() <= 0; });
  if (report) report(best);
  const Contents contents(problem, liveness, graph);
  // Without instants nothing has to leave: the loads of the program itself.
  Relaxed relaxed = relax(contents, budget, {}, std::max(0.0, left()));
  std::vector<std::uint32_t> instants;
  const std::size_t most = std::min(limits.instants, kMostColumns / (1 + contents.all().size() + contents.launches()));
  while (std::isfinite(best.ns) && !relaxed.loads.empty() && instants.size() < most && left() > 0) {
    auto next = more_instants(instants, relaxed.loads, static_cast<double>(budget),
                              std::min(std::max<std::size_t>(1, instants.size()), most - instants.size()));
    if (next.size() == instants.size()) break;
    instants = std::move(next);
    relaxed = relax(contents, budget, instants, std::max(0.0, left()));
    if (relaxed.ns <= best.ns) continue;
    best = {relaxed.ns, instants.size()};
    if (report) report(best);
  }
  return best;
}

}  // namespace memopt::recompute
