#include "planner/swap/search/offers.h"

#include <algorithm>
#include <utility>

#include "planner/layout/solve.h"
#include "planner/swap/auto_swap.h"
#include "planner/swap/slab.h"
#include "planner/swap/timeline.h"
#include "planner/swap/verify.h"

namespace memopt::swap {

Offers::Offers(const Problem& problem, const Lives& lives, Objective objective, const layout::Limits& layout)
    : problem_(problem), lives_(lives), timed_(objective == Objective::kTime), layout_(layout) {}

void Offers::take(Decisions decisions, std::uint64_t height) {
  Problem timed;
  const Problem* problem = &problem_;
  if (!problem_.layout) {
    timed = problem_;
    timed.limit = std::max(height, problem_.limit.value_or(0));
    problem = &timed;
  }
  const Timing timing = Timeline(*problem, lives_).evaluate(decisions);
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

bool Offers::is_better(bool feasible, std::uint64_t footprint, double added_ns) const {
  if (feasible != plan_.feasible) return feasible;
  if (!feasible || !timed_) return footprint < plan_.footprint;
  return added_ns != plan_.added_ns ? added_ns < plan_.added_ns : footprint < plan_.footprint;
}

void Offers::unswapped() {
  if (!problem_.layout) return take({}, lives_.peak);
  const Slab slab = make_slab(problem_, lives_, {});
  const layout::Outcome outcome = layout::solve_by_heuristics(slab.problem, layout_);
  if (!outcome.found(slab.problem.buffers.size())) return;
  take({{}, places_of(problem_, {}, slab, outcome.solution)}, 0);
}

void Offers::auto_swap() {
  for (const Score score : kScores) {
    AutoSwapPlan plan = swap::auto_swap(problem_, lives_, score, layout_);
    if (plan.footprint != 0) take(std::move(plan.decisions), plan.footprint);
  }
}

}  // namespace memopt::swap
