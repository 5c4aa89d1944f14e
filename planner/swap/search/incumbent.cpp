#include "planner/swap/search/incumbent.h"

#include <algorithm>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/simulation/simulator.h"
#include "planner/swap/simulation/verify.h"
#include "planner/swap/strategies/auto_swap.h"
#include "planner/swap/strategies/layout_problem.h"

namespace memopt::swap {

Incumbent::Incumbent(const Problem& problem, const Liveness& liveness, Objective objective,
                     const layout::Limits& layout)
    : problem_(problem), liveness_(liveness), timed_(objective == Objective::kTime), layout_(layout) {}

void Incumbent::offer(Decisions decisions, std::uint64_t height) {
  Problem timed;
  const Problem* problem = &problem_;
  if (!problem_.layout) {
    timed = problem_;
    timed.limit = std::max(height, problem_.limit.value_or(0));
    problem = &timed;
  }
  const Timing timing = Simulator(*problem, liveness_).evaluate(decisions);
  if (timing.fault != Fault::kNone || timing.early_swap_ins > 0) return;
  if (!timed_ && timing.added_ns > kUnnoticed * problem_.period) return;
  const std::uint64_t footprint = problem_.layout ? footprint_of(problem_, decisions) : height;
  const bool feasible = footprint <= problem_.limit.value_or(kNever);
  if (has_ && !is_better(feasible, footprint, timing.added_ns)) return;
  has_ = true;
  plan_.feasible = feasible;
  plan_.decisions = std::move(decisions);
  plan_.footprint = footprint;
  plan_.added_ns = timing.added_ns;
}

bool Incumbent::is_better(bool feasible, std::uint64_t footprint, double added_ns) const {
  if (feasible != plan_.feasible) return feasible;
  if (!feasible || !timed_) return footprint < plan_.footprint;
  return added_ns != plan_.added_ns ? added_ns < plan_.added_ns : footprint < plan_.footprint;
}

void Incumbent::unswapped() {
  if (!problem_.layout) return offer({}, liveness_.peak);
  const LayoutProblem layout = make_layout_problem(problem_, liveness_, {});
  const layout::Outcome outcome = layout::solve_by_heuristics(layout.problem, layout_);
  if (!outcome.found(layout.problem.buffers.size())) return;
  offer({{}, places_of(problem_, {}, layout, outcome.solution)}, 0);
}

void Incumbent::auto_swap() {
  for (const Score score : kScores) {
    AutoSwapPlan plan = swap::auto_swap(problem_, liveness_, score, layout_);
    if (plan.footprint != 0) offer(std::move(plan.decisions), plan.footprint);
  }
}

}  // namespace memopt::swap
