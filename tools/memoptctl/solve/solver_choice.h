// The layout solvers that `memoptctl solve` can run: the planner's, and the integer programme where it is there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::tools {

struct SolverChoice {
  std::string name;
  std::string what;
  std::string missing;  // why it can't be run here; empty: it can
};

// In the order in which they are listed; the first is the default.
std::vector<SolverChoice> solver_choices();

struct SolverRun {
  layout::Outcome outcome;
  std::string refused;  // why there was no run; empty: there was one
  double seconds = 0;
};

// Throws std::invalid_argument if there is no such solver, std::logic_error if its solution does not hold.
SolverRun run_solver(std::string_view name, const layout::Problem& problem, const layout::Limits& limits);

}  // namespace memopt::tools
