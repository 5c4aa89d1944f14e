#include "planner/layout/solvers.h"

#include "planner/layout/offset_lines.h"
#include "planner/layout/power_of_two.h"
#include "planner/layout/smart_pool.h"
#include "planner/layout/solve.h"

namespace memopt::layout {

namespace {

Outcome portfolio(const Problem& problem, const Limits& limits) { return solve(problem, limits); }

Outcome lines_by_lifetime(const Problem& problem, const Limits& limits) { return offset_lines(problem, limits); }

}  // namespace

std::span<const Solver> solvers() {
  static constexpr Solver kSolvers[] = {
      {"auto", "the portfolio: skylines, squeaky wheel, exact search; anytime", portfolio},
      {"offset-lines", "best fit on offset lines, longest lifetime first (Sekiyama et al. 2018)", lines_by_lifetime},
      {"smartpool-best-fit", "largest first, into the smallest hole (Zhang et al. 2019)", smart_pool_best_fit},
      {"smartpool-first-fit", "largest first, into the lowest hole (Zhang et al. 2019)", smart_pool_first_fit},
      {"power-of-two", "sizes rounded up to powers of two, for comparison (Kierstead 1988)", power_of_two, false,
       power_of_two_refuses},
  };
  return kSolvers;
}

}  // namespace memopt::layout
