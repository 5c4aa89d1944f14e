#include "planner/recompute/combined/hidden_swaps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/swap/simulation/simulator.h"

namespace memopt::recompute {
namespace {

using swap::Kind;

// Bytes times the longest time between two uses; 0 where it can't be away.
std::vector<double> worths(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                           double least_price) {
  const std::uint64_t n = problem.operations.size();
  std::vector<double> worth(problem.blocks.size());
  for (std::uint32_t b = 0; b < worth.size(); ++b) {
    const swap::Block& block = problem.blocks[b];
    if (block.pinned || block.bytes == 0) continue;
    if (swap::lives_on(problem, liveness, b)) continue;
    if (graph.can_be_made(b) && graph.make_ns(b) < least_price * static_cast<double>(block.bytes)) continue;
    const auto accesses = liveness.accesses_of(b);
    const auto time = [&](const swap::Access& access) {
      return problem.operations[access.position % n].time + static_cast<double>(access.position / n) * problem.period;
    };
    double longest = 0;
    for (std::size_t k = 1; k < accesses.size(); ++k)
      longest = std::max(longest, time(accesses[k]) - time(accesses[k - 1]));
    if (block.persistent && !accesses.empty())
      longest = std::max(longest, problem.period - time(accesses.back()) + time(accesses.front()));
    // It need not come back.
    if (!block.persistent && !accesses.empty())
      longest = std::max(longest, problem.operations[liveness.of[b].freed].time - time(accesses.back()));
    worth[b] = longest * static_cast<double>(block.bytes);
  }
  return worth;
}

std::uint32_t launch_begin(const Graph& graph, std::uint64_t operation) {
  const std::uint32_t l = graph.launch_at[operation];
  return l == kNone ? static_cast<std::uint32_t>(operation) : graph.launches[l].first;
}

// First operation that begins at this time or later, and is none within a launch; the number of operations if none is.
std::uint32_t operation_from(const swap::Problem& problem, const Graph& graph, double time) {
  const auto& operations = problem.operations;
  const auto at = std::partition_point(operations.begin(), operations.end(),
                                       [&](const swap::Operation& one) { return one.time < time; });
  auto i = static_cast<std::uint32_t>(at - operations.begin());
  while (i < operations.size() && launch_begin(graph, i) != i) ++i;
  return i;
}

}  // namespace

swap::SearchLimits swap_limits(const SearchLimits& limits, std::chrono::nanoseconds time) {
  swap::SearchLimits result;
  result.time = time;
  result.attempts = limits.attempts;
  result.cancelled = limits.cancelled;
  result.threads = limits.threads;
  result.seed = limits.seed;
  result.in_step = true;
  return result;
}

HiddenSwaps find_hidden_swaps(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                              double least_price, std::size_t most, const swap::SearchLimits& limits) {
  const std::vector<double> worth = worths(problem, liveness, graph, least_price);
  std::vector<std::uint32_t> order(worth.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return worth[a] > worth[b]; });
  swap::Problem some = problem;
  some.layout = false;
  some.limit = liveness.peak;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k >= most || worth[order[k]] == 0) some.blocks[order[k]].pinned = true;
  }
  const swap::SearchPlan plan = swap::search(some, liveness, swap::Objective::kFootprint, limits);
  HiddenSwaps hidden;
  if (!plan.feasible || plan.decisions.swaps.empty()) return hidden;
  some.limit = plan.footprint;
  swap::Simulator simulator(some, liveness);
  const swap::Timing timing = simulator.record(plan.decisions);
  if (timing.fault != swap::Fault::kNone || timing.iterations < 2) return hidden;
  const std::uint64_t last = timing.iterations - 1;
  const double begin = simulator.iteration_end(last - 1);
  const std::uint64_t n = problem.operations.size();
  std::vector<std::pair<swap::Swap, Absence>> all;
  for (std::uint32_t j = 0; j < plan.decisions.swaps.size(); ++j) {
    const swap::Swap& one = plan.decisions.swaps[j];
    double left = simulator.out_end(j, last) - begin;
    Absence absence{one.block, 0, kNone};
    const bool wraps = left >= problem.period;
    if (wraps) left -= problem.period;
    const std::uint64_t from = operation_from(problem, graph, left) + (wraps ? n : 0);
    if (one.returns()) {
      const std::uint64_t to = launch_begin(graph, (one.in_after + 1) % n) + (one.in_after + 1) / n * n;
      if (from >= to) continue;  // it is hardly away
      absence.to = static_cast<std::uint32_t>(to % n);
    } else if (from >= liveness.of[one.block].freed) {
      continue;
    }
    absence.from = static_cast<std::uint32_t>(from % n);
    if (absence.from == absence.to) continue;
    all.emplace_back(one, absence);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first.out_after < b.first.out_after; });
  for (auto& [one, absence] : all) {
    hidden.swaps.push_back(std::move(one));
    hidden.absences.push_back(absence);
  }
  return hidden;
}

swap::Decisions place_swaps(const HiddenSwaps& hidden, const Extended& extended, const swap::Liveness& liveness,
                            std::span<const EarlyReturn> early, CopiesIn copies) {
  const swap::Problem& problem = extended.problem;
  const std::uint64_t n = problem.operations.size();
  const std::uint64_t before = extended.operation_at.size();
  const auto at = [&](std::uint64_t position) {
    return extended.operation_at[position % before] + position / before * n;
  };
  swap::Decisions decisions;
  std::vector<std::uint64_t> returns(hidden.swaps.size(), swap::kNever);
  for (std::uint32_t k = 0; k < returns.size(); ++k) {
    const swap::Swap& one = hidden.swaps[k];
    if (one.returns()) returns[k] = at(one.in_after + 1);
  }
  // What a replay reads comes back for it, also if the program does not need it any more.
  for (const EarlyReturn& one : early) {
    const Absence& absence = hidden.absences[one.absence];
    // Behind so many steps, and before this operation.
    std::uint64_t at_return = one.before < before ? extended.operation_at[one.before] : n;
    if (one.steps < extended.step_at.size())
      at_return = std::min<std::uint64_t>(at_return, extended.step_at[one.steps]);
    returns[one.absence] = at_return + (absence.to < absence.from ? n : 0);
  }
  for (std::uint32_t k = 0; k < returns.size(); ++k) {
    swap::Swap one = hidden.swaps[k];
    const auto accesses = liveness.accesses_of(one.block);
    const bool persistent = problem.blocks[one.block].persistent;
    one.out_after = at(one.out_after);
    // The access that it comes back for, over the end of the iteration if need be, and the one before.
    const auto position = [&](std::size_t i) {
      return accesses[i % accesses.size()].position + i / accesses.size() * n;
    };
    const std::size_t all = accesses.size() * (persistent ? 2 : 1);
    std::size_t i = 0;
    while (i < all && position(i) < returns[k]) ++i;
    if (i > 0) one.out_after = std::max(one.out_after, position(i - 1));
    if (i == all) {
      // It is freed, or dropped, before anything needs it again.
      one.in_after = one.need = swap::kNever;
      if (!persistent) decisions.swaps.push_back(one);
      continue;
    }
    one.need = position(i);
    if (one.out_after >= one.need) continue;
    if (persistent && one.out_after >= n) {
      one.out_after -= n;
      one.need -= n;
      returns[k] -= std::min(returns[k], n);
    }
    one.in_after = std::clamp(returns[k] == 0 ? 0 : returns[k] - 1, one.out_after, one.need - 1);
    decisions.swaps.push_back(one);
  }
  // Copies in, the last first: each begins so early that it ends in time, one after the other.
  const auto time = [&](std::uint64_t at_position) {
    return problem.operations[at_position % n].time + static_cast<double>(at_position / n) * problem.period;
  };
  std::vector<std::size_t> order;
  for (std::size_t j = 0; j < decisions.swaps.size(); ++j) {
    if (decisions.swaps[j].returns()) order.push_back(j);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return decisions.swaps[a].need > decisions.swaps[b].need; });
  double engine = 2 * problem.period;
  for (const std::size_t j : order) {
    swap::Swap& one = decisions.swaps[j];
    engine = std::min(engine, time(one.need)) - problem.machine.in_ns(problem.blocks[one.block].bytes);
    if (copies == CopiesIn::kInTime) {
      // The last one behind which it still has the time.
      std::uint64_t enough = one.out_after, late = one.in_after + 1;
      while (late - enough > 1) {
        const std::uint64_t middle = enough + (late - enough) / 2;
        (time(middle + 1) > engine ? late : enough) = middle;
      }
      one.in_after = enough;
    }
    const auto within_launch = [&](std::uint64_t after) { return problem.operations[(after + 1) % n].continues; };
    while (one.in_after > one.out_after && within_launch(one.in_after)) --one.in_after;
  }
  return decisions;
}

}  // namespace memopt::recompute
