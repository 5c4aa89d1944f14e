#include "planner/swap/search/incumbent.h"

#include <algorithm>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/places/layout_problem.h"
#include "planner/swap/places/timeline.h"
#include "planner/swap/simulation/simulator.h"
#include "planner/swap/simulation/verify.h"
#include "planner/swap/strategies/auto_swap.h"

namespace memopt::swap {
namespace {

constexpr double kWorthAnother = 0.99;  // of the time that is added, or of the footprint

}  // namespace

Incumbent::Incumbent(const Problem& problem, const Liveness& liveness, Objective objective,
                     const layout::Limits& layout, OnPlan on_plan)
    : problem_(problem),
      liveness_(liveness),
      timed_(objective == Objective::kTime),
      layout_(layout),
      on_plan_(std::move(on_plan)) {}

bool Incumbent::offer(Decisions decisions, std::uint64_t height) {
  Problem timed;
  const Problem* problem = &problem_;
  if (!problem_.layout) {
    timed = problem_;
    timed.limit = std::max(height, problem_.limit.value_or(0));
    problem = &timed;
  }
  const Timing timing = Simulator(*problem, liveness_).evaluate(decisions);
  if (timing.fault != Fault::kNone || timing.early_swap_ins > 0) return false;
  if (!timed_ && timing.added_ns > kUnnoticed * problem_.period) return false;
  std::uint64_t footprint = height;
  if (problem_.layout) {
    footprint = footprint_of(problem_, decisions);
  } else if (!timed_) {
    footprint = least_limit(*problem, liveness_, decisions);
  }
  if (on_plan_) on_plan_(decisions, footprint, timing.added_ns);
  const bool feasible = footprint <= problem_.limit.value_or(kNever);
  if (has_ && !is_better(feasible, footprint, timing.added_ns)) return true;
  has_ = true;
  plan_.feasible = feasible;
  plan_.decisions = std::move(decisions);
  plan_.footprint = footprint;
  plan_.added_ns = timing.added_ns;
  return true;
}

bool Incumbent::offer_laid_out(Decisions swaps, const layout::Limits& limits, std::optional<std::uint64_t> capacity) {
  LayoutProblem layout = make_layout_problem(problem_, liveness_, swaps, Returns::kElsewhere);
  layout.problem.capacity = capacity;
  const layout::Outcome outcome = layout::solve_by_heuristics(layout.problem, limits);
  if (!outcome.found(layout.problem.buffers.size())) return false;
  set_places(problem_, layout, outcome.solution, swaps);
  return offer(std::move(swaps), 0);
}

bool Incumbent::is_better(bool feasible, std::uint64_t footprint, double added_ns) const {
  if (feasible != plan_.feasible) return feasible;
  if (!feasible || !timed_) return footprint < plan_.footprint;
  return added_ns != plan_.added_ns ? added_ns < plan_.added_ns : footprint < plan_.footprint;
}

void Incumbent::unswapped() {
  if (problem_.layout) {
    offer_laid_out({}, layout_);
  } else {
    offer({}, liveness_.peak);
  }
}

bool Incumbent::lay_out_in_time(const layout::Limits& limits) {
  if (!problem_.layout || !has_) return false;
  const bool feasible = plan_.feasible;
  const double added_ns = plan_.added_ns;
  const std::uint64_t footprint = plan_.footprint;
  auto again = swap::lay_out_in_time(problem_, liveness_, plan_.decisions, limits);
  if (again) offer(std::move(*again), 0);
  return plan_.feasible != feasible || plan_.added_ns < kWorthAnother * added_ns ||
         static_cast<double>(plan_.footprint) < kWorthAnother * static_cast<double>(footprint);
}

void Incumbent::auto_swap() {
  for (const Score score : kScores) {
    AutoSwapPlan plan = swap::auto_swap(problem_, liveness_, score, layout_);
    if (plan.footprint != 0) offer(std::move(plan.decisions), plan.footprint);
  }
}

}  // namespace memopt::swap
