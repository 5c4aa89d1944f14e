#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/verify.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/page/drawings.h"
#include "tools/memoptctl/report/report_model.h"
#include "tools/memoptctl/swap/swap_problem.h"
#include "tools/memoptctl/swap/swap_strategies.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

// The steps of a file, whose replays name the first operation of a launch.
recompute::Steps steps_of(const swap::PlanFile& file, const recompute::Graph& graph) {
  recompute::Steps steps;
  for (const swap::RecomputeStep& step : file.recompute) {
    using Kind = recompute::Step::Kind;
    if (step.drop) {
      steps.push_back({step.before, Kind::kDrop, step.what});
    } else if (step.what < graph.launch_at.size() && graph.begins(step.what)) {
      steps.push_back({step.before, Kind::kReplay, graph.launch_at[step.what]});
    } else {
      throw swap::Invalid(fmt::format("recompute: no launch begins with operation {}", step.what));
    }
  }
  return steps;
}

// What a file says is computed again, as an iteration of its own.
struct Extension {
  recompute::Extended extended;
  swap::Liveness liveness;
  swap::Decisions decisions;
};

Extension extension_of(const SwapProblem& input) {
  const swap::PlanFile& file = input.file;
  const recompute::Graph graph = recompute::make_graph(file.problem, input.liveness);
  const recompute::Steps steps = steps_of(file, graph);
  const recompute::Cost cost = recompute::find_cost(file.problem, input.liveness, graph, steps);
  if (cost.fault) throw swap::Invalid("recompute: " + *cost.fault);
  Extension made;
  made.extended = recompute::extend(file.problem, graph, steps);
  made.extended.problem.layout = file.problem.layout;
  made.liveness = swap::find_liveness(made.extended.problem);
  made.decisions.swaps = recompute::swaps_of_lives(made.extended, file.decisions.swaps);
  std::vector<recompute::StepPlace> of_steps;
  for (std::uint32_t k = 0; k < file.recompute.size(); ++k) {
    for (const auto& [block, place] : file.recompute[k].places) of_steps.push_back({k, block, place});
  }
  if (!file.decisions.places.empty()) {
    made.decisions.places = recompute::places_of_lives(made.extended, file.decisions.places, of_steps);
  }
  return made;
}

class Maker {
 public:
  Maker(SwapProblem& input, const ModelOptions& options) : input_(input), options_(options) {}

  ReportModel make(const std::string& name) {
    const swap::Problem& problem = input_.file.problem;
    ReportedFile& about = model_.file.emplace();
    about.peak_load = input_.liveness.peak;
    about.facts =
        fmt::format("{}{}, {} operations, {} blocks, {} an iteration",
                    problem.name.empty() || printable(problem.name) == name ? "" : printable(problem.name) + " · ",
                    input_.file.recompute.empty() && input_.file.decisions.swaps.empty() ? "iteration" : "plan",
                    problem.operations.size(), problem.blocks.size(), milliseconds(problem.period));
    if (!problem.layout) {
      model_.no_iteration = "its blocks have no addresses (layout false), so that there is nothing to draw";
      return std::move(model_);
    }
    if (!input_.file.recompute.empty()) {
      show_computed_again();
    } else {
      show_iteration_of_file();
    }
    return std::move(model_);
  }

 private:
  void begin(const swap::Problem& problem, const swap::Liveness& liveness, const recompute::Extended* extended) {
    const IterationLabels labels = plain_labels(problem, extended, model_.file->operations);
    model_.iteration = show_iteration(problem, liveness, labels);
    model_.iteration->times = input_.times.empty() ? "the file's" : input_.times;
    model_.iteration->machine = machine_text(problem.machine);
  }

  void add_plan(swap::Problem problem, const swap::Liveness& liveness, swap::Decisions decisions, bool of_file) {
    ShownPlan plan;
    plan.of_file = of_file;
    plan.swaps = !decisions.swaps.empty();
    // The limit that it was made for is shown, and what it holds within is checked for its own.
    if (!of_file) problem.limit.reset();
    plan.point.report = swap::verify(problem, liveness, decisions, {.no_early = !of_file});
    if (plan.point.report.fault) {
      throw swap::Invalid((of_file ? "the plan in it does not hold: " : "a layout of ours does not hold: ") +
                          *plan.point.report.fault);
    }
    plan.point.feasible = true;
    plan.point.footprint = plan.point.report.footprint.value_or(0);
    plan.point.limit = plan.swaps ? problem.limit.value_or(0) : 0;
    plan.point.decisions = std::move(decisions);
    plan.drawn = draw(problem, liveness, plan.point.decisions);
    model_.iteration->plans.push_back(std::move(plan));
  }

  void show_computed_again() {
    const Extension made = extension_of(input_);
    if (made.decisions.places.empty()) {
      model_.no_iteration = "its plan computes again, and says not where blocks lie (plan --recompute --places does)";
      return;
    }
    begin(made.extended.problem, made.liveness, &made.extended);
    add_plan(made.extended.problem, made.liveness, made.decisions, true);
    model_.no_swaps = "the plan of the file computes blocks again: it is shown as it is";
  }

  void show_iteration_of_file() {
    const swap::Problem& problem = input_.file.problem;
    begin(problem, input_.liveness, nullptr);
    const swap::Decisions& planned = input_.file.decisions;
    const bool placed = planned.places.size() == problem.blocks.size() && !problem.blocks.empty() &&
                        std::all_of(planned.places.begin(), planned.places.end(),
                                    [](const swap::Place& place) { return !place.offsets.empty(); });
    if (!placed && !planned.swaps.empty()) {
      throw swap::Invalid("there are swaps in it, but no offsets of all blocks; memoptctl plan makes a whole plan");
    }
    const bool only_placed = placed && planned.swaps.empty();
    if (only_placed) {
      add_plan(problem, input_.liveness, planned, true);
    } else {
      swap::Problem unlimited = problem;
      unlimited.limit.reset();
      SwapPlan plan = plan_swaps(find_strategy("", "none"), unlimited, input_.liveness, SwapPlanOptions{});
      add_plan(problem, input_.liveness, std::move(plan.decisions), false);
      if (placed) add_plan(problem, input_.liveness, planned, true);
    }
    add_swap_plans(problem, input_.liveness, options_, model_);
    // The file's own plan is what its reader came for.
    ShownPlan& last = model_.iteration->plans[only_placed || !placed ? 0 : 1];
    if (options_.limit.empty() && last.of_file) last.point.wanted = true;
  }

  SwapProblem& input_;
  const ModelOptions& options_;
  ReportModel model_;
};

}  // namespace

ReportModel make_report_of_iteration(input::File& file, const ModelOptions& options) {
  SwapPlanOptions reading;
  reading.machine = options.machine;
  std::optional<SwapProblem> input = read_problem(reading, file);
  if (!input) throw std::logic_error("a file that is an iteration has none");
  try {
    return Maker(*input, options).make(printable(file.path().substr(file.path().rfind('/') + 1)));
  } catch (const swap::Invalid& error) {
    throw std::runtime_error(file.name() + ": " + error.what());
  }
}

}  // namespace memopt::tools
