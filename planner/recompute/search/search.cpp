#include "planner/recompute/search/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "planner/recompute/online/dtr.h"
#include "planner/recompute/published/chen.h"
#include "planner/recompute/search/foresight.h"

namespace memopt::recompute {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBetweenBlocks = 0.7;   // of attempts: other weights for some blocks; else for all
constexpr double kWorse = 0.01;          // of its time, a plan may be worse than the one before, at first
constexpr std::uint64_t kRestart = 400;  // attempts without success, from the best on again

// The first of each kind of published ones goes on for so long whatever happens, so that there is a plan; the others
// end in a part of the time.
constexpr std::chrono::seconds kGrace{1};
constexpr double kPublished = 0.35;

Clock::duration part_of(std::chrono::nanoseconds time, double part) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time) * part);
}

// Where it begins: what is used last goes first, or what is cheap, or what is large.
const std::vector<Weights>& beginnings() {
  static const std::vector<Weights> all = [] {
    std::vector<Weights> list;
    // Ancestors, descendants, cost, bytes, next.
    for (const auto& [a, d, c, b, n] : {std::array{1., 1., 1., 1., 1.},
                                        {1., 1., 1., 1., .5},
                                        {1., 0., 1., 1., 1.},
                                        {1., 0., 1., 1., .3},
                                        {0., 0., 1., 1., .5},
                                        {1., 1., .5, 1., 1.},
                                        {1., .3, 1., 1., 0.},
                                        {1., 1., 1., .5, .5}}) {
      Weights one;
      one.ancestors = a;
      one.descendants = d;
      one.cost = c;
      one.bytes = b;
      one.next = n;
      list.push_back(one);
    }
    return list;
  }();
  return all;
}

class Climb {
 public:
  Climb(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, const Foreseen& foreseen,
        std::uint64_t budget, const Beside* beside, const SearchLimits& limits, const Weights* from,
        Clock::time_point end, unsigned number)
      : problem_(problem),
        liveness_(liveness),
        graph_(graph),
        budget_(budget),
        beside_(beside),
        limits_(limits),
        from_(from),
        end_(end),
        policy_(problem, foreseen),
        random_(limits.seed * 1000 + number),
        number_(number) {
    for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
      if (graph.can_be_made(b)) choosable_.push_back(b);
    }
  }

  void run() {
    const std::vector<Weights> all = from_ != nullptr ? std::vector{*from_} : beginnings();
    // Each thread begins with another one, and has all of them.
    for (std::size_t k = 0; k < all.size() && !is_over(); ++k) attempt(all[(k + number_) % all.size()], best_ns_);
    if (choosable_.empty()) return;
    if (best_ns_ == kNone_) weights_ = all[number_ % all.size()];
    Weights now = weights_;
    double now_ns = best_ns_;
    std::uint64_t since = 0;
    while (!is_over() && best_ns_ > 0) {
      Weights next = changed(now);
      // Less and less may be lost.
      const double slack = now_ns == kNone_ ? 0 : now_ns * kWorse * std::max(0.0, 1 - part());
      const double ns = attempt(next, now_ns == kNone_ ? kNone_ : now_ns + slack);
      if (ns <= now_ns + slack || now_ns == kNone_) {
        if (ns < now_ns) since = 0;
        now = std::move(next);
        now_ns = ns;
      }
      if (++since > kRestart && best_ns_ != kNone_) {
        now = weights_;
        now_ns = best_ns_;
        since = 0;
      }
    }
  }

  double best_ns() const { return best_ns_; }
  Steps take_steps() { return std::move(steps_); }
  Cost take_cost() { return std::move(cost_); }
  std::vector<EarlyReturn> take_early() { return std::move(early_); }
  Weights take_weights() { return std::move(weights_); }

 private:
  static constexpr double kNone_ = std::numeric_limits<double>::infinity();

  bool is_over() const { return tried_ >= limits_.attempts || is_stopped(); }
  bool is_stopped() const {
    return (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) ||
           (end_ != Clock::time_point::max() && Clock::now() >= end_);
  }
  // Of what ends it.
  double part() const {
    double part = 0;
    if (limits_.attempts != ~std::uint64_t{0})
      part = static_cast<double>(tried_) / static_cast<double>(std::max<std::uint64_t>(1, limits_.attempts));
    if (end_ != Clock::time_point::max()) {
      const double left = std::chrono::duration<double>(end_ - Clock::now()).count();
      part = std::max(part, 1 - left / std::chrono::duration<double>(limits_.time).count());
    }
    return part;
  }

  // What it adds; infinite if it is no plan, or adds more than `most`.
  double attempt(const Weights& weights, double most) {
    ++tried_;
    policy_.begin(weights);
    std::vector<EarlyReturn> early;
    auto steps = run_online(
        problem_, liveness_, graph_, budget_, beside_ ? beside_->absences : std::span<const Absence>(), policy_,
        std::min(most, kMostIterations * problem_.period), [this] { return is_stopped(); }, early);
    if (!steps) return kNone_;
    double ns = 0;
    for (const Step& step : *steps) {
      if (step.kind == Step::Kind::kReplay) ns += graph_.launches[step.what].ns;
    }
    // Only what may be gone on from is looked at any further.
    if (ns > most || (!beside_ && ns >= best_ns_)) return ns;
    Cost cost = find_cost(problem_, liveness_, graph_, *steps);
    if (cost.fault || (!beside_ && cost.peak > budget_)) return kNone_;
    if (beside_) ns = beside_->added_ns(*steps, cost, early);
    if (ns < best_ns_) {
      best_ns_ = ns;
      steps_ = std::move(*steps);
      cost_ = std::move(cost);
      early_ = std::move(early);
      weights_ = weights;
    }
    return ns;
  }

  Weights changed(const Weights& from) {
    Weights next = from;
    std::normal_distribution<double> normal;
    if (std::uniform_real_distribution<double>(0, 1)(random_) < kBetweenBlocks) {
      if (next.blocks.empty()) next.blocks.assign(problem_.blocks.size(), 0);
      // A few, or up to a fifth of all.
      const double part = std::pow(std::uniform_real_distribution<double>(0, 1)(random_), 3) / 5;
      const auto count = 1 + static_cast<std::size_t>(part * static_cast<double>(choosable_.size()));
      for (std::size_t k = 0; k < count; ++k) {
        const std::uint32_t b = choosable_[random_() % choosable_.size()];
        next.blocks[b] += static_cast<float>(1.5 * normal(random_));
      }
      return next;
    }
    double* const all[] = {&next.ancestors, &next.descendants, &next.cost, &next.bytes, &next.next, &next.unused};
    double& one = *all[random_() % std::size(all)];
    one = &one == &next.unused ? std::min(1.0, one * std::exp(2 * normal(random_)))
                               : std::max(0.0, one + 0.3 * normal(random_));
    return next;
  }

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  const std::uint64_t budget_;
  const Beside* const beside_;  // may be none
  const SearchLimits& limits_;
  const Weights* const from_;  // may be none
  const Clock::time_point end_;
  Foresight policy_;
  std::mt19937_64 random_;
  unsigned number_;
  std::vector<std::uint32_t> choosable_;
  std::uint64_t tried_ = 0;
  double best_ns_ = kNone_;
  Steps steps_;
  Cost cost_;
  std::vector<EarlyReturn> early_;
  Weights weights_;
};

// Each as far as it comes; never none.
std::vector<std::unique_ptr<Climb>> climb(const swap::Problem& problem, const swap::Liveness& liveness,
                                          const Graph& graph, const Foreseen& foreseen, std::uint64_t budget,
                                          const Beside* beside, const SearchLimits& limits, const Weights* from,
                                          Clock::time_point end) {
  std::vector<std::unique_ptr<Climb>> climbs;
  for (unsigned k = 0; k < std::max(1U, limits.threads); ++k) {
    climbs.push_back(std::make_unique<Climb>(problem, liveness, graph, foreseen, budget, beside, limits, from, end, k));
  }
  std::vector<std::jthread> threads;
  for (std::size_t k = 1; k < climbs.size(); ++k) threads.emplace_back([&climb = *climbs[k]] { climb.run(); });
  climbs[0]->run();
  threads.clear();  // joins
  return climbs;
}

Clock::time_point end_of(const SearchLimits& limits) {
  return limits.time != std::chrono::nanoseconds::max() ? Clock::now() + limits.time : Clock::time_point::max();
}

}  // namespace

std::optional<Found> search(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                            std::uint64_t budget, const SearchLimits& limits, const Weights* from) {
  const bool timed = limits.time != std::chrono::nanoseconds::max();
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end = end_of(limits);
  std::optional<Found> best;
  const auto offer = [&](Steps steps) {
    Cost cost = find_cost(problem, liveness, graph, steps);
    if (cost.fault || cost.peak > budget || (best && best->cost.added_ns <= cost.added_ns)) return;
    best = Found{std::move(steps), std::move(cost), {}};
  };
  // Until so much of the time is over; for so long at least, if there is time, whatever happens.
  const auto until = [&](double part, Clock::duration least = Clock::duration::zero()) {
    const Clock::time_point enough = std::min(end, begin + least);
    const Clock::time_point over =
        timed ? std::max(enough, begin + part_of(limits.time, part)) : Clock::time_point::max();
    return [enough, over, cancelled = limits.cancelled] {
      const Clock::time_point now = Clock::now();
      return now >= over || (now >= enough && cancelled != nullptr && cancelled->load(std::memory_order_relaxed));
    };
  };
  const auto try_policy = [&](Heuristic heuristic, const std::function<bool()>& ends) {
    const double most = best ? best->cost.added_ns : kMostIterations * problem.period;
    const auto policy = make_dtr(problem, graph, heuristic);
    if (auto steps = run_online(problem, liveness, graph, budget, *policy, most, ends)) offer(std::move(*steps));
  };
  const auto try_segments = [&](Chen strategy, const std::function<bool()>& ends) {
    if (auto steps = chen(problem, liveness, graph, strategy, budget, ends)) offer(std::move(*steps));
  };
  const auto try_published = [&] {
    // The quickest of both kinds first, so that there is a plan.
    try_policy(Heuristic::kDtrEq, until(kPublished / 3, kGrace));
    try_segments(Chen::kRecursive, until(2 * kPublished / 3, 2 * kGrace));
    for (const Chen strategy : {Chen::kSqrt, Chen::kDropCheap, Chen::kBudget})
      try_segments(strategy, until(kPublished));
    for (const Heuristic heuristic :
         {Heuristic::kDtr, Heuristic::kMsps, Heuristic::kDtrLocal, Heuristic::kLru, Heuristic::kSize}) {
      try_policy(heuristic, until(kPublished));
    }
  };
  if (from == nullptr) try_published();
  const Foreseen foreseen(problem, liveness, graph);
  double least = std::numeric_limits<double>::infinity();
  Weights weights;
  for (const auto& one : climb(problem, liveness, graph, foreseen, budget, nullptr, limits, from, end)) {
    if (one->best_ns() < least) {
      least = one->best_ns();
      weights = one->take_weights();
    }
    offer(one->take_steps());
  }
  if (best) best->weights = std::move(weights);
  return best;
}

std::optional<FoundBeside> search_beside(const swap::Problem& problem, const swap::Liveness& liveness,
                                         const Graph& graph, std::uint64_t budget, const Beside& beside,
                                         const SearchLimits& limits, const Weights* from) {
  const Foreseen foreseen(problem, liveness, graph);
  std::optional<FoundBeside> best;
  for (const auto& one : climb(problem, liveness, graph, foreseen, budget, &beside, limits, from, end_of(limits))) {
    if (std::isinf(one->best_ns()) || (best && best->added_ns <= one->best_ns())) continue;
    best = FoundBeside{one->take_steps(), one->take_cost(), one->take_early(), one->best_ns(), one->take_weights()};
  }
  return best;
}

}  // namespace memopt::recompute
