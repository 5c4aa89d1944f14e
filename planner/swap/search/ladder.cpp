#include "planner/swap/search/ladder.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "planner/swap/model/load.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {
namespace {

constexpr std::uint64_t kMoreAttempts = 4;

// No attempts at all are a round, too: greedy plans and coverings.
std::vector<std::uint64_t> rounds_of(std::uint64_t attempts) {
  std::vector<std::uint64_t> rounds = {0};
  for (std::uint64_t round = kFirstRoundAttempts; round <= attempts; round *= kMoreAttempts) {
    rounds.push_back(round);
    if (round > attempts / kMoreAttempts) break;  // also where the next one would be too large a number
  }
  return rounds;
}

class Ladder {
 public:
  Ladder(const Problem& problem, const Liveness& liveness, Objective objective, const SearchLimits& limits,
         std::uint64_t steps)
      : problem_(problem),
        liveness_(liveness),
        timed_(objective == Objective::kTime),
        limits_(limits),
        limit_(problem.limit.value_or(kNever)),
        steps_(steps) {
    limits_.time = std::chrono::nanoseconds::max();
  }

  SearchPlan run() {
    const std::vector<std::uint64_t> steps = timed_ ? this->steps() : std::vector<std::uint64_t>{kNever};
    for (const std::uint64_t attempts : rounds_of(limits_.attempts)) {
      for (const std::uint64_t step : steps) {
        if (is_done() || is_cancelled()) return std::move(best_);
        search_within(step, attempts);
      }
    }
    return std::move(best_);
  }

 private:
  // The narrowest first. That below what one operation needs has no plan, and is there for the least limit that is
  // named where no other has one.
  std::vector<std::uint64_t> steps() const {
    const std::uint64_t least = least_load(problem_, liveness_);
    std::vector<std::uint64_t> steps = {least - std::min<std::uint64_t>(least, 1)};
    if (least > steps.back() && least <= limit_) steps.push_back(least);
    for (std::uint64_t k = 1; k <= steps_; ++k) {
      const std::uint64_t step = liveness_.peak / steps_ * k + liveness_.peak % steps_ * k / steps_;
      if (step > steps.back() && step <= limit_) steps.push_back(step);
    }
    return steps;
  }

  void search_within(std::uint64_t step, std::uint64_t attempts) {
    Problem problem = problem_;
    if (step != kNever) problem.limit = step;
    if (step == kNever && problem.layout) problem.limit.reset();
    limits_.attempts = attempts;
    // Places are what footprints are of; without any, a search says in the end what limit its plan needs.
    OnPlan on_plan;
    if (problem.layout) on_plan = [this](const auto&... plan) { offer(plan...); };
    const Objective objective = timed_ ? Objective::kTime : Objective::kFootprint;
    const SearchPlan found = search(problem, liveness_, objective, limits_, on_plan);
    if (!problem.layout) offer(found.decisions, found.footprint, found.added_ns);
    best_.candidates = std::max(best_.candidates, found.candidates);
    best_.attempts += found.attempts;
  }

  void offer(const Decisions& decisions, std::uint64_t footprint, double added_ns) {
    const bool feasible = footprint <= limit_;
    if (!problem_.layout && timed_ && feasible) {
      const Timing timing = Simulator(problem_, liveness_).evaluate(decisions);
      if (timing.fault != Fault::kNone || timing.early_swap_ins > 0) return;
      added_ns = timing.added_ns;
    }
    if (has_ && !is_better(feasible, footprint, added_ns)) return;
    has_ = true;
    best_.feasible = feasible;
    best_.decisions = decisions;
    best_.footprint = footprint;
    best_.added_ns = added_ns;
  }

  bool is_better(bool feasible, std::uint64_t footprint, double added_ns) const {
    if (feasible != best_.feasible) return feasible;
    if (!feasible || !timed_) return footprint < best_.footprint;
    return added_ns != best_.added_ns ? added_ns < best_.added_ns : footprint < best_.footprint;
  }

  bool is_done() const { return timed_ && has_ && best_.feasible && best_.added_ns == 0; }
  bool is_cancelled() const {
    return has_ && limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed);
  }

  const Problem& problem_;
  const Liveness& liveness_;
  const bool timed_;
  SearchLimits limits_;
  const std::uint64_t limit_, steps_;
  SearchPlan best_;
  bool has_ = false;
};

}  // namespace

SearchPlan search_by_steps(const Problem& problem, const Liveness& liveness, Objective objective,
                           const SearchLimits& limits, std::uint64_t steps) {
  return Ladder(problem, liveness, objective, limits, steps).run();
}

}  // namespace memopt::swap
