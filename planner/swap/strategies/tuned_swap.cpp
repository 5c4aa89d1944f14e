#include "planner/swap/strategies/tuned_swap.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/swap/simulation/simulator.h"
#include "planner/swap/strategies/gaussian_process.h"

namespace memopt::swap {
namespace {

constexpr double kInfeasible = 1;  // above what is added, as a share of the period, in any plan of use
constexpr double kNoneAtAll = 10;

class Tuning {
 public:
  Tuning(const Problem& problem, const Liveness& liveness, const layout::Limits& limits)
      : problem_(problem),
        liveness_(liveness),
        limits_(limits),
        scored_(score_candidates(problem, liveness)),
        simulator_(problem, liveness) {}

  TunedPlan run(const TuningOptions& options) {
    MinimiseOptions search;
    search.dimensions = kScores.size();
    search.evaluations = std::max<std::size_t>(options.evaluations, 1);
    search.at_random = options.at_random;
    search.seed = options.seed;
    if (problem_.limit) search.enough = 0;
    const auto begin = std::chrono::steady_clock::now();
    search.stop = [&] {
      if (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) return true;
      return options.time != std::chrono::nanoseconds::max() &&
             std::chrono::steady_clock::now() - begin >= options.time;
    };
    for (std::size_t s = 0; s < kScores.size(); ++s) {
      search.first.emplace_back(kScores.size(), 0.0);
      search.first.back()[s] = 1;
    }
    const Minimum minimum = minimise([this](const Parameters& point) { return cost_of(point); }, search);
    best_.evaluations = minimum.values.size();
    best_.planned = costs_.size();
    return std::move(best_);
  }

 private:
  double cost_of(const Parameters& point) {
    Weights weights{};
    std::copy(point.begin(), point.end(), weights.begin());
    std::vector<Gap> ranked = ranking(weights);
    std::vector<std::tuple<std::uint32_t, std::uint64_t>> key;
    for (const Gap& gap : ranked) key.emplace_back(gap.block, gap.out_after);
    const auto [known, is_new] = costs_.try_emplace(std::move(key), 0.0);
    if (is_new) known->second = plan(std::move(ranked), weights);
    return known->second;
  }

  // A score by itself must give its own order, to the last bit.
  std::vector<Gap> ranking(const Weights& weights) const {
    for (const Score score : kScores) {
      Weights alone{};
      alone[static_cast<std::size_t>(score)] = 1;
      if (weights == alone) return rank_candidates(problem_, liveness_, score);
    }
    return rank(scored_, weights);
  }

  double plan(std::vector<Gap> ranked, const Weights& weights) {
    TunedPlan made;
    made.plan = auto_swap(problem_, liveness_, std::move(ranked), limits_);
    made.weights = weights;
    if (made.plan.feasible) {
      const Timing timing = simulator_.evaluate(made.plan.decisions);
      made.plan.feasible = timing.fault == Fault::kNone;
      made.added_ns = timing.added_ns;
    }
    if (empty_ || better(made, best_)) best_ = made;
    empty_ = false;
    const auto footprint = static_cast<double>(made.plan.footprint);
    const double share = liveness_.peak == 0 ? 0 : footprint / static_cast<double>(liveness_.peak);
    if (made.plan.footprint == 0 && liveness_.peak != 0) return kNoneAtAll;
    if (!made.plan.feasible) return kInfeasible + share;
    if (!problem_.limit) return share;
    return problem_.period > 0 ? std::min(made.added_ns / problem_.period, kInfeasible) : 0;
  }

  bool better(const TunedPlan& a, const TunedPlan& b) const {
    if (a.plan.feasible != b.plan.feasible) return a.plan.feasible;
    const auto quality = [&](const TunedPlan& one) {
      const std::uint64_t footprint = one.plan.footprint == 0 && liveness_.peak != 0 ? kNever : one.plan.footprint;
      return one.plan.feasible && problem_.limit ? std::pair(one.added_ns, footprint)
                                                 : std::pair(static_cast<double>(footprint), std::uint64_t{0});
    };
    return quality(a) < quality(b);
  }

  const Problem& problem_;
  const Liveness& liveness_;
  const layout::Limits& limits_;
  Scored scored_;
  Simulator simulator_;
  std::map<std::vector<std::tuple<std::uint32_t, std::uint64_t>>, double> costs_;  // of orders planned so far
  TunedPlan best_;
  bool empty_ = true;
};

}  // namespace

TunedPlan tuned_swap(const Problem& problem, const Liveness& liveness, const layout::Limits& limits,
                     const TuningOptions& options) {
  return Tuning(problem, liveness, limits).run(options);
}

}  // namespace memopt::swap
