#include "planner/recompute/published/checkmate.h"

#include <algorithm>
#include <chrono>
#include <coin/CbcEventHandler.hpp>
#include <coin/CbcModel.hpp>
#include <coin/CbcSolver.hpp>
#include <coin/ClpEventHandler.hpp>
#include <coin/ClpSimplex.hpp>
#include <coin/CoinPackedMatrix.hpp>
#include <coin/OsiClpSolverInterface.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace memopt::recompute {
namespace {

// 0.1 is the paper's. What 0 comes to is a bound.
constexpr double kAllowances[] = {0.1, 0, 0.05, 0.02, 0.2, 0.3};
constexpr double kRoundedDown = 1 - 1e-6;  // what the solvers take for equal

class Deadline {
 public:
  explicit Deadline(const CheckmateLimits& limits) : limits_(limits) {}

  double left() const {
    const double gone = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    return std::max(0.0, limits_.seconds - gone);
  }
  bool is_over() const { return left() <= 0 || (limits_.ends && limits_.ends()); }

 private:
  const CheckmateLimits& limits_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class EndOfSearch : public CbcEventHandler {
 public:
  explicit EndOfSearch(const Deadline& deadline) : deadline_(deadline) {}
  CbcAction event(CbcEvent) override { return deadline_.is_over() ? stop : noAction; }
  CbcAction event(CbcEvent, void*) override { return noAction; }
  CbcEventHandler* clone() const override { return new EndOfSearch(*this); }

 private:
  const Deadline& deadline_;
};

class EndOfSimplex : public ClpEventHandler {
 public:
  explicit EndOfSimplex(const Deadline& deadline) : deadline_(deadline) {}
  int event(Event which) override {
    if (which != endOfIteration) return -1;
    return ++iterations_ % kBetween == 0 && deadline_.is_over() ? 5 : -1;
  }
  ClpEventHandler* clone() const override { return new EndOfSimplex(*this); }

 private:
  static constexpr int kBetween = 16;  // iterations
  const Deadline& deadline_;
  int iterations_ = 0;
};

CoinPackedMatrix matrix_of(const LinearProgram& linear) {
  CoinPackedMatrix matrix(true, linear.rows.data(), linear.columns.data(), linear.factors.data(),
                          static_cast<CoinBigIndex>(linear.factors.size()));
  matrix.setDimensions(static_cast<int>(linear.row_least.size()), static_cast<int>(linear.cost.size()));
  return matrix;
}

CheckmateResult result_of(const CheckmateProgram& program) {
  CheckmateResult result;
  result.too_large = program.is_too_large();
  result.solved = program.is_infeasible();
  result.columns = program.linear().cost.size();
  result.rows = program.linear().row_least.size();
  result.stages = program.stages();
  return result;
}

class Best {
 public:
  Best(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t limit)
      : problem_(problem), liveness_(liveness), graph_(graph), limit_(limit) {}

  void offer(std::optional<Steps> steps) {
    if (!steps) return;
    const Cost cost = find_cost(problem_, liveness_, graph_, *steps);
    if (cost.fault) throw std::logic_error("checkmate: a plan does not hold: " + *cost.fault);
    if (cost.peak > limit_ || (steps_ && cost.added_ns >= added_ns_)) return;
    steps_ = std::move(steps);
    added_ns_ = cost.added_ns;
  }
  std::optional<Steps> take() { return std::move(steps_); }

 private:
  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  const std::uint64_t limit_;
  std::optional<Steps> steps_;
  double added_ns_ = 0;
};

// Nothing needs to be replayed, and nothing to be solved.
std::optional<CheckmateResult> without_solver(const CheckmateProgram& program, Best& best, std::uint64_t limit,
                                              std::uint64_t peak) {
  CheckmateResult result = result_of(program);
  if (peak <= limit) best.offer(Steps());
  const bool whole = !result.too_large && !result.solved && !program.is_stopped();
  if (peak > limit && whole && !program.linear().cost.empty()) return std::nullopt;
  if (peak > limit && whole) best.offer(program.steps_of({}));
  result.steps = best.take();
  if (result.steps) {
    result.too_large = false;
    result.solved = true;
    result.bound_ns = 0;
  }
  return result;
}

// What both begin with.
struct Task {
  Task(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t limit,
       const CheckmateLimits& limits, CheckmateForm form)
      : deadline(limits),
        program(problem, liveness, graph, limit, limits.most_columns, form, [this] { return deadline.is_over(); }),
        best(problem, liveness, graph, limit),
        done(without_solver(program, best, limit, liveness.peak)) {}

  const Deadline deadline;
  const CheckmateProgram program;
  Best best;
  std::optional<CheckmateResult> done;
};

int ignore_callback(CbcModel*, int) { return 0; }

}  // namespace

CheckmateResult checkmate(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                          std::uint64_t limit, const CheckmateLimits& limits, CheckmateForm form) {
  Task task(problem, liveness, graph, limit, limits, form);
  auto& [deadline, program, best, done] = task;
  if (done) return std::move(*done);
  CheckmateResult result = result_of(program);
  const LinearProgram& linear = program.linear();

  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  solver.loadProblem(matrix_of(linear), linear.least.data(), linear.most.data(), linear.cost.data(),
                     linear.row_least.data(), linear.row_most.data());
  for (std::size_t k = 0; k < linear.whole.size(); ++k) {
    if (linear.whole[k] != 0) solver.setInteger(static_cast<int>(k));
  }
  // Without it CBC goes on for seconds, and its process is ended before it says what it found.
  EndOfSimplex simplex(deadline);
  solver.getModelPtr()->passInEventHandler(&simplex);
  CbcModel model(solver);
  model.setLogLevel(0);
  CbcSolverUsefulData data;
  data.noPrinting_ = true;
  data.useSignalHandler_ = false;
  CbcMain0(model, data);
  EndOfSearch search(deadline);
  model.passInEventHandler(&search);
  const std::string seconds = std::to_string(std::min(1e9, deadline.left()));
  const char* arguments[] = {"checkmate", "-log",          "0",      "-timeMode", "elapsed",
                             "-seconds",  seconds.c_str(), "-solve", "-quit"};
  CbcMain1(static_cast<int>(std::size(arguments)), arguments, model, ignore_callback, data);

  if (model.bestSolution() != nullptr) {
    const std::span<const double> solution(model.bestSolution(), linear.cost.size());
    best.offer(program.steps_of(solution));
  }
  // CBC takes a node whose simplex was stopped to have no solution: of a search that was stopped only the plan counts.
  const bool over = deadline.is_over();
  const bool infeasible = !over && model.isProvenInfeasible();
  const bool optimal = !over && model.isProvenOptimal();
  result.solved = optimal || infeasible;
  if (optimal) result.bound_ns = program.to_ns(std::max(0.0, model.getObjValue())) * kRoundedDown;
  result.steps = best.take();
  return result;
}

CheckmateResult checkmate_rounded(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                  std::uint64_t limit, const CheckmateLimits& limits, CheckmateForm form) {
  Task task(problem, liveness, graph, limit, limits, form);
  auto& [deadline, program, best, done] = task;
  if (done) return std::move(*done);
  CheckmateResult result = result_of(program);
  const LinearProgram& linear = program.linear();

  ClpSimplex model;
  model.setLogLevel(0);
  model.loadProblem(matrix_of(linear), linear.least.data(), linear.most.data(), linear.cost.data(),
                    linear.row_least.data(), linear.row_most.data());
  EndOfSimplex simplex(deadline);
  model.passInEventHandler(&simplex);
  bool first = true;
  result.solved = true;
  for (const double allowance : kAllowances) {
    bool possible = true;
    for (const int column : program.memory()) {
      const double most = linear.most[static_cast<std::size_t>(column)] - allowance;
      possible = possible && most >= 0;
      model.setColumnUpper(column, std::max(0.0, most));
    }
    if (!possible) continue;
    model.setMaximumSeconds(deadline.left());
    // The basis of the one before is still dual feasible.
    first ? model.initialDualSolve() : model.dual();
    first = false;
    const bool optimal = model.isProvenOptimal();
    if (!optimal && (deadline.is_over() || !model.isProvenPrimalInfeasible())) {
      result.solved = false;
      break;
    }
    if (!optimal) continue;
    if (allowance == 0) result.bound_ns = program.to_ns(std::max(0.0, model.objectiveValue())) * kRoundedDown;
    best.offer(program.round(std::span(model.primalColumnSolution(), linear.cost.size())));
  }
  result.steps = best.take();
  return result;
}

}  // namespace memopt::recompute
