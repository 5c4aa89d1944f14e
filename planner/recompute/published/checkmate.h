// Checkmate, Jain et al., MLSys 2020, as a strategy to compare with: the program of checkmate_program.h, solved by CBC
// (theirs: Gurobi), or its linear relaxation by CLP, whose solution is rounded in two phases (section 5). A library of
// its own: it needs both solvers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/recompute/published/checkmate_program.h"

namespace memopt::recompute {

struct CheckmateLimits {
  double seconds = 1e9;              // after which the best until then counts
  std::size_t most_columns = 50000;  // of a program, above which it is not tried
  std::function<bool()> ends = {};   // asked now and then: as if the time was over
};

struct CheckmateResult {
  std::optional<Steps> steps;  // accepted by find_cost, within the limit
  bool too_large = false;      // it was not tried
  // The program has no better solution than the plan's, or, without one, none; of the relaxation: all that is tried
  // was.
  bool solved = false;
  std::optional<double> bound_ns;  // below which the program has no solution; of a search that was stopped: none
  std::size_t columns = 0, rows = 0, stages = 0;
};

// The mixed-integer program. Thread-safe, but for what CBC writes to standard output now and then.
CheckmateResult checkmate(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                          std::uint64_t limit, const CheckmateLimits& limits, CheckmateForm form = {});

// The relaxation is solved for limits that are lower by several parts (the paper's eps, 0.1 in its experiments), as
// rounding may need more memory. Of the rounded plans that are within the limit, the one that adds least.
CheckmateResult checkmate_rounded(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                  std::uint64_t limit, const CheckmateLimits& limits, CheckmateForm form = {});

}  // namespace memopt::recompute
