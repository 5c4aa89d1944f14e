#include "planner/recompute/places/placed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "planner/recompute/combined/hidden_swaps.h"
#include "planner/recompute/places/descent.h"
#include "planner/swap/search/search.h"

namespace memopt::recompute {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// Of a layout, in time: of all there is and for each block; or in steps.
constexpr nanoseconds kBriefOfBlock = std::chrono::microseconds(20);
constexpr double kBrief = 0.02, kLonger = 0.08;
constexpr nanoseconds kLongestLayout = std::chrono::seconds(1);
constexpr std::uint64_t kBriefWork = 20'000, kLongerWork = 100'000;
// In less, a search for what is computed again may come to nothing, and with it the descent.
constexpr nanoseconds kShortest = std::chrono::milliseconds(100);
// Plans of a search without a time limit.
constexpr std::uint64_t kPlans = 8;
// Of the time, where blocks are swapped as well: replays alone, swaps alone, and both. The rest is for what was best.
constexpr double kReplays = 0.22, kSwaps = 0.12, kBoth = 0.45;
// Of that of both, the first plan, for which all swaps that hide are tried.
constexpr double kFirstOfBoth = 0.6;

nanoseconds part_of(nanoseconds time, double part) {
  if (time == nanoseconds::max()) return time;
  return std::chrono::duration_cast<nanoseconds>(std::clamp(part, 0.0, 1.0) * time);
}

class PlacedSearch {
 public:
  PlacedSearch(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t limit,
               const SearchLimits& limits)
      : problem_(problem), liveness_(liveness), graph_(graph), limit_(limit), limits_(limits) {}

  std::optional<Combined> run(std::optional<Means> means) {
    if (!means) return descended(&PlacedSearch::replayed, limits_.time);
    if (means == Means::kSwaps) return swaps_of({}, limits_.time);
    offer(descended(&PlacedSearch::replayed, part_of(limits_.time, kReplays)));
    if (!is_over()) offer(swaps_of({}, part_of(limits_.time, kSwaps)));
    if (!is_over()) offer(descended(&PlacedSearch::combined, part_of(limits_.time, kBoth), kFirstOfBoth));
    if (is_over()) return std::move(best_);
    if (best_ && !best_->decisions.swaps.empty()) {
      if (best_->waits_ns > 0) offer(swaps_of(best_->steps, left()));
    } else if (is_timed()) {
      offer(descended(&PlacedSearch::replayed, left()));
    }
    // Of a plan that has no places, its swaps may be what is in the way.
    if (!best_ && !last_steps_.empty()) offer(swaps_of(last_steps_, std::max(left(), nanoseconds(1))));
    return std::move(best_);
  }

 private:
  bool is_timed() const { return limits_.time != nanoseconds::max(); }
  nanoseconds left() const {
    return is_timed() ? std::max(nanoseconds(0), limits_.time - nanoseconds(Clock::now() - begin_)) : limits_.time;
  }
  bool is_over() const {
    return (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) ||
           left() == nanoseconds(0) || (best_ && best_->added_ns() == 0);
  }

  SearchLimits within(nanoseconds time) const {
    SearchLimits limits = limits_;
    limits.time = time;
    return limits;
  }

  void offer(std::optional<Combined> one) {
    if (one && (!best_ || one->added_ns() < best_->added_ns())) best_ = std::move(one);
  }

  using ByLoad = std::optional<Combined> (PlacedSearch::*)(std::uint64_t load, const SearchLimits& limits);
  std::optional<Combined> descended(ByLoad by_load, nanoseconds time, std::optional<double> first = {}) {
    DescentLimits descent;
    if (first) descent.first = *first;
    // What a layout wastes is about the same.
    if (best_ && best_->waits_ns == 0) descent.load = std::max(best_->load, limit_ / 2);
    descent.time = time;
    if (!is_timed()) descent.plans = kPlans;
    descent.cancelled = limits_.cancelled;
    descent.goes_on = true;
    descent.layouts = layout_effort(problem_, within(time));
    std::uint64_t plans = 0;
    const PlanByLoad plan = [&](std::uint64_t load, double part) {
      SearchLimits limits = within(std::max(kShortest, part_of(time, part)));
      limits.seed += plans++;
      return (this->*by_load)(load, limits);
    };
    return descend(problem_, graph_, limit_, plan, descent);
  }

  std::optional<Combined> replayed(std::uint64_t load, const SearchLimits& limits) {
    auto found = search(problem_, liveness_, graph_, load, limits, weights_ ? &*weights_ : nullptr);
    // What was good for more load may be none for less.
    if (!found && weights_) found = search(problem_, liveness_, graph_, load, limits);
    if (!found) return std::nullopt;
    Combined plan;
    plan.steps = std::move(found->steps);
    plan.load = found->cost.peak;
    plan.cost = std::move(found->cost);
    weights_ = std::move(found->weights);
    return plan;
  }

  std::optional<Combined> combined(std::uint64_t load, const SearchLimits& limits) {
    if (are_swaps_in_vain_) return std::nullopt;
    const bool is_first = !progress_.has_begun;
    auto plan = combine(problem_, liveness_, graph_, load, Means::kBoth, limits, &progress_);
    if (plan) last_steps_ = plan->steps;
    // For about the same load.
    are_swaps_in_vain_ = is_first && best_ && (!plan || plan->added_ns() >= best_->added_ns());
    return plan;
  }

  // The iteration with these steps, swapped and laid out by the swap planner.
  std::optional<Combined> swaps_of(const Steps& steps, nanoseconds time) {
    const Extended extended = extend_with_layout(problem_, graph_, steps, limit_);
    const swap::Liveness liveness = swap::find_liveness(extended.problem);
    swap::SearchPlan found =
        swap::search(extended.problem, liveness, swap::Objective::kTime, swap_limits(limits_, time));
    if (!found.feasible) return std::nullopt;
    const Cost cost = find_cost(problem_, liveness_, graph_, steps);
    auto plan = judge(steps, cost, extended, liveness, found.decisions);
    if (plan) {
      if (plan->decisions.swaps.empty()) plan->load = cost.peak;
      return plan;
    }
    // Kept out of launches, its swaps are not quite those that were laid out.
    Combined moved;
    moved.steps = steps;
    moved.cost = cost;
    moved.decisions.swaps = std::move(found.decisions.swaps);
    keep_launches_whole(extended.problem, moved.decisions.swaps);
    return lay_out(problem_, graph_, moved, limit_, layout_effort(problem_, within(time))).plan;
  }

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  const std::uint64_t limit_;
  const SearchLimits& limits_;
  const Clock::time_point begin_ = Clock::now();
  std::optional<Weights> weights_;  // from which a search goes on; nothing: it begins
  Progress progress_;
  bool are_swaps_in_vain_ = false;  // replays alone are better than beside swaps
  Steps last_steps_;
  std::optional<Combined> best_;
};

}  // namespace

LayoutEffort layout_effort(const swap::Problem& problem, const SearchLimits& limits) {
  LayoutEffort effort;
  effort.brief.threads = limits.threads;
  effort.brief.seed = limits.seed;
  effort.longer = effort.brief;
  if (limits.time == nanoseconds::max()) {
    effort.brief.work = kBriefWork;
    effort.longer.work = kLongerWork;
    return effort;
  }
  const nanoseconds of_blocks = static_cast<std::int64_t>(problem.blocks.size()) * kBriefOfBlock;
  effort.brief.time = std::min(kLongestLayout, part_of(limits.time, kBrief) + of_blocks);
  effort.longer.time = std::max(effort.brief.time, std::min(kLongestLayout, part_of(limits.time, kLonger)));
  return effort;
}

std::optional<Combined> plan_with_places(const swap::Problem& problem, const swap::Liveness& liveness,
                                         const Graph& graph, std::uint64_t limit, std::optional<Means> means,
                                         const SearchLimits& limits) {
  return PlacedSearch(problem, liveness, graph, limit, limits).run(means);
}

}  // namespace memopt::recompute
