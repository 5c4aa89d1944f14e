#include "tools/memoptctl/solve/solver_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "planner/layout/portfolio/solvers.h"
#include "planner/layout/problem/validation.h"
#include "tools/memoptctl/common/suggestion.h"
#include "tools/memoptctl/solve/integer_program_process.h"

namespace memopt::tools {
namespace {

constexpr std::string_view kIntegerProgram = "integer-program";

SolverRun run_programme(const layout::Problem& problem, const layout::Limits& limits) {
  std::vector<std::uint64_t> offsets;
  const layout::ModuleAnswer answer = run_integer_program(problem, limits, offsets);
  if (answer.failure[0] != 0) return {{}, answer.failure, 0};
  const std::uint64_t bound = std::max(answer.lower_bound, layout::load_bound(problem));
  SolverRun run{layout::outcome_of(problem, std::move(offsets), bound, kIntegerProgram), {}, 0};
  run.outcome.infeasible = answer.infeasible || run.outcome.infeasible;
  return run;
}

SolverRun run_listed(const layout::Solver& solver, const layout::Problem& problem, const layout::Limits& limits) {
  if (solver.unsupported != nullptr) {
    if (auto reason = solver.unsupported(problem)) return {{}, std::move(*reason), 0};
  }
  return {solver.run(problem, limits), {}, 0};
}

SolverRun run_unchecked(std::string_view name, const layout::Problem& problem, const layout::Limits& limits) {
  if (name == kIntegerProgram) return run_programme(problem, limits);
  for (const layout::Solver& solver : layout::solvers()) {
    if (solver.name == name) return run_listed(solver, problem, limits);
  }
  std::vector<std::string> names;
  for (const SolverChoice& choice : solver_choices()) names.push_back(choice.name);
  throw std::invalid_argument(
      fmt::format("there is no solver {}{}; memoptctl solve --list shows them", name, did_you_mean(name, names)));
}

}  // namespace

std::vector<SolverChoice> solver_choices() {
  std::vector<SolverChoice> choices;
  for (const layout::Solver& solver : layout::solvers()) {
    choices.push_back({std::string(solver.name), std::string(solver.what), {}});
  }
  choices.push_back({std::string(kIntegerProgram),
                     "mixed-integer programme, by CBC, small problems (Sekiyama et al. 2018)",
                     integer_program_missing()});
  return choices;
}

SolverRun run_solver(std::string_view name, const layout::Problem& problem, const layout::Limits& limits) {
  const auto started = std::chrono::steady_clock::now();
  SolverRun run = run_unchecked(name, problem, limits);
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (run.refused.empty() && run.outcome.found(problem.buffers.size())) {
    if (const auto fault = layout::validate(problem, run.outcome.solution)) {
      throw std::logic_error(fmt::format("solver {}: its solution does not hold: {}", name, *fault));
    }
  }
  return run;
}

}  // namespace memopt::tools
