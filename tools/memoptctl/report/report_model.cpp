#include "tools/memoptctl/report/report_model.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "planner/sending/swap_plan.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/machines.h"
#include "tools/memoptctl/swap/swap_problem.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

// Of all plans with swaps together: the page has to be read.
constexpr std::size_t kMostDrawn = 150'000;

// What the recording calls the iteration's operations and blocks.
IterationLabels labels_of(const planner::IterationProblem& observed, const swap::Liveness& liveness,
                          const RecordedProgram& program) {
  IterationLabels labels;
  labels.ranks = observed.ranks;
  for (const RecordedProgram::Step& step : program.steps) labels.steps.push_back({step.kind, step.name});
  std::size_t persistent = 0;
  for (std::uint32_t b = 0; b < observed.problem.blocks.size(); ++b) {
    IterationLabels::Block label;
    if (observed.problem.blocks[b].persistent) {
      if (persistent < observed.persistent_numbers.size()) {
        label.number = observed.persistent_numbers[persistent];
        label.stack = program.persistent_stack[persistent];
      }
      ++persistent;
    } else {
      const std::uint64_t rank = observed.ranks[liveness.of[b].born % liveness.operations];
      label.number = observed.origins[rank].sequence;
      label.stack = program.steps[rank].stack;
    }
    labels.blocks.push_back(label);
  }
  return labels;
}

}  // namespace

void add_swap_plans(const swap::Problem& problem, const swap::Liveness& liveness, const ModelOptions& options,
                    ReportModel& model) {
  SweepOptions sweep = options.sweep;
  if (!options.limit.empty()) sweep.limit = limit_of("--limit", options.limit, liveness.peak);
  if (sweep.seconds <= 0) {
    model.no_swaps = "no time was given for planning swaps (--time-budget 0)";
    return;
  }
  if (const auto reason = planner::why_not_swapped(problem)) {
    model.no_swaps = *reason;
    return;
  }
  Sweep swept = sweep_limits(problem, liveness, sweep);
  ShownIteration& iteration = *model.iteration;
  iteration.least_limit = swept.least;
  iteration.left_out = swept.left_out;
  iteration.interrupted = swept.interrupted;
  const std::uint64_t layout = iteration.plans.front().point.footprint;
  for (PlanPoint& point : swept.points) {
    // Swaps that save nothing are none.
    if (point.limit == 0 && point.footprint >= layout) continue;
    iteration.plans.push_back({std::move(point), true, false, std::nullopt});
  }
  const auto is_with_swaps = [](const ShownPlan& plan) { return plan.swaps && plan.point.feasible; };
  if (std::none_of(iteration.plans.begin(), iteration.plans.end(), is_with_swaps)) {
    model.no_swaps =
        swept.interrupted ? "interrupted before there was a plan" : "none that needs less was found in the time for it";
  }
  // That which was asked for is drawn first.
  std::size_t drawn = 0;
  for (const bool wanted : {true, false}) {
    for (ShownPlan& plan : iteration.plans) {
      if (!plan.swaps || !plan.point.feasible || plan.point.wanted != wanted || drawn >= kMostDrawn) continue;
      DrawnPlan drawing = draw(problem, liveness, plan.point.decisions);
      if (drawing.blocks.size() > kMostDrawn - drawn && !wanted) continue;
      drawn += drawing.blocks.size();
      plan.drawn = std::move(drawing);
    }
  }
}

ReportModel make_report(input::File& file, const ModelOptions& options) {
  const auto say = [&](const char* what) {
    if (options.sweep.progress) options.sweep.progress(what);
  };
  const std::optional<swap::Machine> machine = machine_of(options.machine);
  // Said before there is work.
  if (!options.limit.empty() && limit_of("--limit", options.limit, std::uint64_t{1} << 40) == 0) {
    throw std::invalid_argument("--limit: expected more than 0 bytes");
  }
  ReportModel model;
  say("looking for the iteration");
  model.planning = plan_file(file, {.iteration = true});
  planner::IterationProblem* const observed = model.planning.plan ? &*model.planning.plan->iteration : nullptr;
  say("reading the operations");
  model.program = read_program(file, observed, model.planning.plan ? model.planning.plan->found_at : 0);
  if (observed == nullptr) {
    model.no_iteration = model.planning.note.empty() ? "there is no operation" : model.planning.note;
    return model;
  }
  if (machine) observed->problem.machine = *machine;
  try {
    planner::join_launches(observed->ranks, observed->problem);
    const swap::Liveness liveness = swap::find_liveness(observed->problem);
    model.iteration = show_iteration(observed->problem, liveness, labels_of(*observed, liveness, model.program));
    model.iteration->times = times_text(model.planning);
    model.iteration->machine = machine_text(observed->problem.machine);
    swap::Decisions layout{{}, observed->places};
    ShownPlan first;
    first.swaps = false;
    first.point.feasible = true;
    first.point.decisions = layout;
    first.point.report = swap::verify(observed->problem, liveness, layout);
    // Which may be of a later iteration than that of the plan's figures, laid out as that one.
    first.point.footprint = first.point.report.footprint.value_or(0);
    if (first.point.report.fault) throw std::runtime_error("the layout does not hold: " + *first.point.report.fault);
    say("drawing the layout");
    first.drawn = draw(observed->problem, liveness, layout);
    model.iteration->plans.push_back(std::move(first));
    add_swap_plans(observed->problem, liveness, options, model);
  } catch (const swap::Invalid& error) {
    // Threads that change their order from iteration to iteration can do that.
    model.iteration.reset();
    model.no_iteration = std::string("its blocks can't be drawn in one iteration: ") + error.what();
  }
  return model;
}

}  // namespace memopt::tools
