#include "planner/layout/solvers.h"

#include "planner/layout/branch_and_bound.h"
#include "planner/layout/ejection_search.h"
#include "planner/layout/offset_lines.h"
#include "planner/layout/power_of_two.h"
#include "planner/layout/refusal.h"
#include "planner/layout/smart_pool.h"
#include "planner/layout/solve.h"

namespace memopt::layout {

namespace {

Outcome portfolio(const Problem& problem, const Limits& limits) { return solve(problem, limits); }
Outcome heuristics(const Problem& problem, const Limits& limits) { return solve_by_heuristics(problem, limits); }

// With a capacity: whether there is a solution within it; without one, the least.
Outcome exact(const Problem& problem, const Limits& limits) {
  return problem.capacity ? fit_into(problem, *problem.capacity, limits) : fit_least(problem, limits);
}

// It counts in 64 bits with sign, several heights at once.
std::optional<std::string> exact_refuses(const Problem& problem) { return refuse_sums_from(59, problem); }

Outcome lines_by_lifetime(const Problem& problem, const Limits& limits) { return offset_lines(problem, limits); }

}  // namespace

std::span<const Solver> solvers() {
  static constexpr Solver kSolvers[] = {
      {"auto", "the portfolio: skylines, squeaky wheel, ejection, exact search; anytime", portfolio},
      {"heuristics", "the portfolio without exact search", heuristics},
      {"branch-and-bound",
       "exact search for the least height, or for the capacity; canonical placements (after Moffitt 2023)", exact, true,
       exact_refuses},
      {"ejection-search",
       "what reaches too high is put back, and takes out what is in its way; the seed chooses its rules",
       ejection_search},
      {"offset-lines", "best fit on offset lines, longest lifetime first (Sekiyama et al. 2018)", lines_by_lifetime},
      {"smartpool-best-fit", "largest first, into the smallest hole (Zhang et al. 2019)", smart_pool_best_fit},
      {"smartpool-first-fit", "largest first, into the lowest hole (Zhang et al. 2019)", smart_pool_first_fit},
      {"power-of-two", "sizes rounded up to powers of two, for comparison (Kierstead 1988)", power_of_two, false,
       power_of_two_refuses},
  };
  return kSolvers;
}

}  // namespace memopt::layout
