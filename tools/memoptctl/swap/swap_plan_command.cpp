#include "tools/memoptctl/swap/swap_plan_command.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/swap/model/load.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/page/drawings.h"
#include "tools/memoptctl/swap/swap_bounds.h"
#include "tools/memoptctl/swap/swap_problem.h"
#include "tools/memoptctl/swap/swap_strategies.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

constexpr int kExitWrongUse = 2;
constexpr int kExitInfeasible = 3;
constexpr int kExitNoIteration = 4;

void print(const SwapProblem& input, const SwapPlan& plan, const swap::ModuleBounds* bounds) {
  const swap::Problem& problem = input.file.problem;
  const swap::Report& report = plan.report;
  const bool found = bounds != nullptr && bounds->failure[0] == 0;
  const auto bound = [&](double value, const std::string& shown) {
    return found && value >= 0 ? fmt::format(", bound {}", shown) : std::string();
  };
  std::vector<std::pair<std::string, std::string>> rows;
  if (!input.times.empty()) rows.emplace_back("times", input.times);
  const std::string held = mib(plan.footprint) + (problem.layout ? "" : " (load only)");
  rows.emplace_back("footprint", held);
  if (found && bounds->least_footprint >= 0) {
    rows.back().second += fmt::format(", bound {} at no added time", mib(bounds->least_footprint));
  }
  const double added = bounds != nullptr ? bounds->least_added_time : -1;
  rows.emplace_back("added time", fmt::format("{} an iteration of {}{}", milliseconds(report.timing.added_ns),
                                              milliseconds(problem.period),
                                              bound(added, std::isfinite(added) ? milliseconds(added) : "infinite")));
  rows.emplace_back("  waits",
                    fmt::format("{} at allocations, {} at accesses", milliseconds(report.timing.stall_malloc_ns),
                                milliseconds(report.timing.stall_access_ns)));
  rows.emplace_back("peak load", fmt::format("{} live, {} resident", mib(report.peak_live), mib(report.peak_resident)));
  rows.emplace_back("swaps", fmt::format("{} of {} candidates", plan.decisions.swaps.size(), plan.candidates));
  rows.emplace_back("copies", fmt::format("{} out, {} in", mib(report.bytes_out), mib(report.bytes_in)));
  if (report.bytes_dropped != 0) rows.back().second += fmt::format(", {} dropped", mib(report.bytes_dropped));
  rows.emplace_back("copy engines", fmt::format("out {:.1f} %, in {:.1f} %", 100 * report.out_utilisation,
                                                100 * report.in_utilisation));
  if (problem.machine.remap_ns) {
    rows.emplace_back("mapped anew", fmt::format("{} returns, {} chunks, {} of the host's time an iteration",
                                                 report.returns_elsewhere, report.remapped_chunks,
                                                 milliseconds(static_cast<double>(report.remapped_chunks) *
                                                              *problem.machine.remap_ns)));
  }
  rows.emplace_back("machine", machine_text(problem.machine));
  if (!input.damage.empty()) rows.emplace_back("damaged", input.damage);
  if (input.blind_launches != 0) {
    rows.emplace_back("not seen", fmt::format("what {} launches touch", input.blind_launches));
  }
  rows.emplace_back("planning time",
                    fmt::format("{:.2f} s{}", plan.seconds, interrupted() ? ", interrupted: the best until then" : ""));
  if (bounds != nullptr && !found) rows.emplace_back("no bounds", bounds->failure);
  for (const auto& [name, value] : rows) fmt::print("{:<14}  {}\n", name, value);
}

int report_infeasible(const SwapStrategy& strategy, const SwapProblem& input, const SwapPlan& plan) {
  const swap::Problem& problem = input.file.problem;
  const std::uint64_t least = swap::least_load(problem, input.liveness);
  if (problem.limit && least > *problem.limit) {
    fmt::print(stderr, "memoptctl: no plan is within {}: pinned blocks and what one operation touches are {}\n",
               mib(*problem.limit), mib(least));
  } else if (interrupted()) {
    // What a search has not come to is not infeasible.
    throw std::runtime_error("interrupted before there was a plan" +
                             (problem.limit ? " within " + mib(*problem.limit) : std::string()));
  }
  if (plan.footprint == 0) {
    fmt::print(stderr, "memoptctl: {} finds no plan at no added time\n", strategy.name);
  } else {
    fmt::print(stderr, "memoptctl: {} finds no plan within {}; the least feasible limit it reaches is {} ({} bytes)\n",
               strategy.name, mib(problem.limit.value_or(0)), mib(plan.footprint), plan.footprint);
  }
  return kExitInfeasible;
}

std::string facts_of(const SwapProblem& input, const swap::Report& report, const swap::Decisions& decisions) {
  return fmt::format("{} of a peak load of {}, {} added to an iteration of {}, {} swaps, copies of {}",
                     mib(report.footprint.value_or(0)), mib(input.liveness.peak), milliseconds(report.timing.added_ns),
                     milliseconds(input.file.problem.period), decisions.swaps.size(),
                     swap::name_of(input.file.problem.machine));
}

int plan_once(const SwapPlanOptions& options, input::File& file) {
  const SwapStrategy& strategy = find_strategy("--strategy", options.strategy);
  refuse_ignored(options, {&strategy});
  if (!options.objective.empty() && options.objective != "time" && options.objective != "footprint") {
    throw std::invalid_argument("--objective: expected footprint or time, not " + printable(options.objective));
  }
  for (const char* const name : {"--limits", "--strategies"}) {
    if (options.has(name)) throw std::invalid_argument(std::string(name) + " is for --compare");
  }
  expect_writable(options.json);
  expect_plot(options.plot);
  std::optional<SwapProblem> input = read_problem(options, file);
  if (!input) return kExitNoIteration;
  swap::Problem& problem = input->file.problem;
  if (!options.plot.empty() && !problem.layout) {
    throw std::invalid_argument("--plot: expected a problem with a layout; that of " + printable(options.file) +
                                " has none");
  }
  if (!options.limit.empty()) problem.limit = limit_of("--limit", options.limit, input->liveness.peak);
  if (options.objective == "time" && !problem.limit) {
    throw std::invalid_argument("--objective time: expected a --limit, as there is none in " + printable(options.file));
  }
  SwapPlan plan = plan_swaps(strategy, problem, input->liveness, options);
  if (!plan.feasible) return report_infeasible(strategy, *input, plan);
  std::optional<swap::ModuleBounds> bounds;
  if (options.bound && !interrupted()) bounds = swap_bounds(problem, options.bound_seconds);
  print(*input, plan, bounds ? &*bounds : nullptr);
  input->file.decisions = std::move(plan.decisions);
  if (!options.json.empty()) {
    std::ostringstream text;
    swap::write_plan(input->file, text);
    write_text(options.json, std::move(text).str());
  }
  if (!options.plot.empty()) {
    const PlanDrawing drawing{.title = problem.name.empty() ? options.file : problem.name,
                              .facts = facts_of(*input, plan.report, input->file.decisions),
                              .times = input->times,
                              .file = options.file};
    write_text(options.plot, plan_page(drawing, problem, input->file.decisions));
  }
  return 0;
}

}  // namespace

int swap_plan(const SwapPlanOptions& options, input::File& file) {
  try {
    return options.compare ? compare_swaps(options, file) : plan_once(options, file);
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "memoptctl: {}\n", error.what());
    return kExitWrongUse;
  }
}

}  // namespace memopt::tools
