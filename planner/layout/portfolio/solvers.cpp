#include "planner/layout/portfolio/solvers.h"

#include "planner/layout/exact/branch_and_bound.h"
#include "planner/layout/local_search/ejection_search.h"
#include "planner/layout/portfolio/solve.h"
#include "planner/layout/published/offset_lines.h"
#include "planner/layout/published/online_best_fit.h"
#include "planner/layout/published/power_of_two.h"
#include "planner/layout/published/smart_pool.h"

namespace memopt::layout {

namespace {

Outcome portfolio(const Problem& problem, const Limits& limits) { return solve(problem, limits); }
Outcome heuristics(const Problem& problem, const Limits& limits) { return solve_by_heuristics(problem, limits); }

// With a capacity: whether there is a solution within it; without one, the least height.
Outcome exact(const Problem& problem, const Limits& limits) {
  return problem.capacity ? place_within(problem, *problem.capacity, limits) : minimize_height(problem, limits);
}

// It adds several heights in signed 64 bits.
std::optional<std::string> exact_unsupported(const Problem& problem) { return unsupported_sums(59, problem); }

Outcome lines_by_lifetime(const Problem& problem, const Limits& limits) { return offset_lines(problem, limits); }

}  // namespace

std::span<const Solver> solvers() {
  static constexpr Solver kSolvers[] = {
      {"auto", "the portfolio: skylines, squeaky wheel, ejection, exact search; anytime", portfolio},
      {"heuristics", "the portfolio without exact search", heuristics},
      {"branch-and-bound",
       "exact search for the least height, or for the capacity; canonical placements (after Moffitt 2023)", exact, true,
       exact_unsupported},
      {"ejection-search", "guided ejection search (after Nagata and Braeysy 2009); the seed selects its rules",
       ejection_search},
      {"offset-lines", "best fit on offset lines, longest lifetime first (Sekiyama et al. 2018)", lines_by_lifetime},
      {"smartpool-best-fit", "largest first, into the smallest hole (Zhang et al. 2019)", smart_pool_best_fit},
      {"smartpool-first-fit", "largest first, into the lowest hole (Zhang et al. 2019)", smart_pool_first_fit},
      {"online-best-fit", "as they begin, into the smallest hole, as an allocator does it (Knuth)", online_best_fit},
      {"power-of-two", "sizes rounded up to powers of two, for comparison (Kierstead 1988)", power_of_two, false,
       power_of_two_unsupported},
  };
  return kSolvers;
}

}  // namespace memopt::layout
