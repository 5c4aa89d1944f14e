#include "planner/recompute/combined/combine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/combined/hidden_swaps.h"
#include "planner/swap/search/search.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::recompute {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNoPlan = std::numeric_limits<double>::infinity();
// Of the bytes that can be made again, those that are cheaper than so many are not swapped.
constexpr double kCheap[] = {0, 0.3, 0.6, 0.85};
constexpr std::size_t kMostSwapped = 3000;  // blocks
// Of the time: replays alone; for each of kCheap, swaps that hide, and what is made again beside them; swaps alone.
// What is left is for the best of these once more.
constexpr double kReplays = 0.12, kHidden = 0.06, kBeside = 0.07, kSwaps = 0.12;
constexpr double kMore = 1.5;  // times as much for what hides, and beside it, where neither is tried alone
constexpr double kAnew = 0.3;  // of what is left: swaps of the best plan, chosen anew, where it waits

class Combination {
 public:
  Combination(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t budget,
              const SearchLimits& limits)
      : problem_(problem), liveness_(liveness), graph_(graph), budget_(budget), limits_(limits) {}

  std::optional<Combined> run(Means means, Progress* progress) {
    if (means == Means::kSwaps || liveness_.peak <= budget_) {
      swap_alone(limits_.time);
    } else if (progress != nullptr && progress->has_begun) {
      resume(*progress);
    } else {
      choose(progress == nullptr);
    }
    // Where nothing was found beside swaps, that is tried again with other ones.
    if (progress != nullptr && best_ && !hidden_.swaps.empty())
      *progress = {std::move(hidden_), std::move(found_with_), true};
    if (best_) find_load(problem_, graph_, budget_, *best_);
    return std::move(best_);
  }

 private:
  // `alone`: replays, and swaps, as well.
  void choose(bool alone) {
    // First what finds a plan in the shortest time.
    if (alone) replay_alone(share(kReplays));
    const double more = alone ? 1 : kMore;
    for (const double price : prices()) {
      if (is_over()) break;
      HiddenSwaps hidden = find_hidden_swaps(problem_, liveness_, graph_, price, kMostSwapped,
                                             swap_limits(limits_, share(more * kHidden)));
      if (replay_beside(hidden, share(more * kBeside))) hidden_ = std::move(hidden);
    }
    if (alone && !is_over() && swap_alone(share(kSwaps))) hidden_.swaps.clear();
    if (!is_over()) go_on();
  }

  void resume(const Progress& progress) {
    hidden_ = progress.hidden;
    weights_ = progress.weights;
    if (!replay_beside(hidden_, share(1 - kAnew))) found_with_ = progress.weights;
    if (!is_over() && best_ && best_->waits_ns > 0) offer(swapped(best_->steps, share(1)), found_with_);
  }

  bool is_over() const {
    return (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) ||
           (best_ && best_->added_ns() == 0) || (timed() && elapsed() >= limits_.time);
  }
  bool timed() const { return limits_.time != std::chrono::nanoseconds::max(); }
  std::chrono::nanoseconds elapsed() const { return Clock::now() - begin_; }
  std::chrono::nanoseconds share(double part) const {
    if (!timed()) return limits_.time;
    return std::min(limits_.time - std::chrono::nanoseconds(elapsed()), part_of(limits_.time, part));
  }
  static std::chrono::nanoseconds part_of(std::chrono::nanoseconds time, double part) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(part * time);
  }

  SearchLimits replays(std::chrono::nanoseconds time) const {
    SearchLimits limits = limits_;
    limits.time = time;
    if (weights_) limits.seed = ~limits.seed;  // other changes than those that were tried already
    return limits;
  }

  // Nanoseconds a byte.
  std::vector<double> prices() const {
    std::vector<std::pair<double, double>> all;  // price, bytes
    double bytes = 0;
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      if (!graph_.can_be_made(b)) continue;
      const auto its = static_cast<double>(problem_.blocks[b].bytes);
      all.emplace_back(graph_.make_ns(b) / its, its);
      bytes += all.back().second;
    }
    std::sort(all.begin(), all.end());
    std::vector<double> prices;
    for (const double part : kCheap) {
      double left = part * bytes;
      std::size_t k = 0;
      while (k < all.size() && left >= all[k].second) left -= all[k++].second;
      const double price = part == 0 || k == all.size() ? 0 : all[k].first;
      if (prices.empty() || prices.back() < price) prices.push_back(price);
    }
    return prices;
  }

  // The best of them is what more time is worth most for. Without a limit of time each search is over with its
  // attempts.
  void go_on() {
    const bool waits = best_ && best_->waits_ns > 0;
    const auto left = share(1);
    if (best_) weights_ = found_with_;
    if (!hidden_.swaps.empty()) {
      if (timed()) replay_beside(hidden_, waits ? left - part_of(left, kAnew) : left);
      if (!is_over() && best_->waits_ns > 0) offer(swapped(best_->steps, share(1)));
    } else if (timed() && best_ && best_->steps.empty()) {
      swap_alone(left);
    } else if (timed()) {
      replay_alone(left);
    }
  }

  // Whether it is the best so far.
  bool offer(std::optional<Combined> one, Weights weights = {}) {
    if (!one || (best_ && best_->added_ns() <= one->added_ns())) return false;
    best_ = std::move(one);
    found_with_ = std::move(weights);
    return true;
  }

  bool replay_alone(std::chrono::nanoseconds time) {
    auto found = search(problem_, liveness_, graph_, budget_, replays(time), from());
    if (!found) return false;
    Combined one;
    one.steps = std::move(found->steps);
    one.cost = std::move(found->cost);
    return offer(std::move(one), std::move(found->weights));
  }
  const Weights* from() const { return weights_ ? &*weights_ : nullptr; }

  Extended extended_by(const Steps& steps) const {
    Extended extended = extend(problem_, graph_, steps);
    extended.problem.limit = budget_;
    return extended;
  }

  bool replay_beside(const HiddenSwaps& hidden, std::chrono::nanoseconds time) {
    if (hidden.swaps.empty()) return false;
    const auto plan = [&](const Steps& steps, const Cost& cost, std::span<const EarlyReturn> early) {
      const Extended extended = extended_by(steps);
      const swap::Liveness liveness = swap::find_liveness(extended.problem);
      return judge(steps, cost, extended, liveness, place_swaps(hidden, extended, liveness, early, CopiesIn::kInTime));
    };
    Beside beside;
    beside.absences = hidden.absences;
    beside.added_ns = [&](const Steps& steps, const Cost& cost, std::span<const EarlyReturn> early) {
      const auto one = plan(steps, cost, early);
      return one ? one->added_ns() : kNoPlan;
    };
    auto found = search_beside(problem_, liveness_, graph_, budget_, beside, replays(time), from());
    return found && offer(plan(found->steps, found->cost, found->early), std::move(found->weights));
  }

  bool swap_alone(std::chrono::nanoseconds time) { return offer(swapped({}, time)); }

  std::optional<Combined> swapped(const Steps& steps, std::chrono::nanoseconds time) const {
    const Extended extended = extended_by(steps);
    const swap::Liveness liveness = swap::find_liveness(extended.problem);
    Cost cost = find_cost(problem_, liveness_, graph_, steps);
    if (liveness.peak <= budget_) return judge(steps, std::move(cost), extended, liveness, {});
    swap::SearchPlan found =
        swap::search(extended.problem, liveness, swap::Objective::kTime, swap_limits(limits_, time));
    if (!found.feasible) return std::nullopt;
    return judge(steps, std::move(cost), extended, liveness, std::move(found.decisions));
  }

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  const std::uint64_t budget_;
  const SearchLimits& limits_;
  const Clock::time_point begin_ = Clock::now();
  std::optional<Combined> best_;
  HiddenSwaps hidden_;              // beside which the best plan was found; none: it was found otherwise
  Weights found_with_;              // the best plan, if it is of replays
  std::optional<Weights> weights_;  // from which searches go on; nothing: they begin
};

}  // namespace

std::optional<Combined> judge(Steps steps, Cost cost, const Extended& extended, const swap::Liveness& liveness,
                              swap::Decisions decisions) {
  keep_launches_whole(extended.problem, decisions.swaps);
  const swap::Report report = swap::verify(extended.problem, liveness, decisions);
  if (report.fault || find_launch_fault(extended.problem, decisions.swaps)) return std::nullopt;
  Combined one;
  one.cost = std::move(cost);
  one.steps = std::move(steps);
  one.decisions = std::move(decisions);
  one.waits_ns = report.timing.added_ns;
  one.bytes_out = report.bytes_out;
  one.bytes_in = report.bytes_in;
  one.load = extended.problem.layout ? report.peak_resident : *extended.problem.limit;
  one.footprint = report.footprint;
  return one;
}

void find_load(const swap::Problem& problem, const Graph& graph, std::uint64_t budget, Combined& plan) {
  plan.load = plan.cost.peak;
  if (plan.decisions.swaps.empty()) return;
  Extended extended = extend(problem, graph, plan.steps);
  extended.problem.limit = budget;
  plan.load = swap::least_limit(extended.problem, swap::find_liveness(extended.problem), plan.decisions);
}

std::optional<Combined> combine(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                std::uint64_t budget, Means means, const SearchLimits& limits, Progress* progress) {
  return Combination(problem, liveness, graph, budget, limits).run(means, progress);
}

}  // namespace memopt::recompute
