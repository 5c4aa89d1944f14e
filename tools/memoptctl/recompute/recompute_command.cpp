#include "tools/memoptctl/recompute/recompute_command.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/places/lives.h"
#include "planner/swap/files/plan_file.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/page/drawings.h"
#include "tools/memoptctl/recompute/observed_launches.h"
#include "tools/memoptctl/recompute/recompute_compare.h"
#include "tools/memoptctl/recompute/recompute_planner.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

using recompute::Combined;

constexpr int kExitWrongUse = 2;
constexpr int kExitInfeasible = 3;
constexpr int kExitNoIteration = 4;

void refuse_others(const SwapPlanOptions& options) {
  for (const char* const name : {"--objective", "--clean-drops", "--remap-time", "--attempts"}) {
    if (options.has(name))
      throw std::invalid_argument(std::string(name) + " is for swaps alone, and not for --recompute");
  }
  if (options.has("--layout-time") && !options.places)
    throw std::invalid_argument("--layout-time is for layouts, and --recompute has none without --places");
  for (const char* const name : {"--no-bound", "--bound-time"}) {
    if (options.has(name) && options.swap)
      throw std::invalid_argument(std::string(name) + ": there is no bound of plans that swap as well");
  }
  if (options.has("--machine") && !options.swap)
    throw std::invalid_argument("--machine is for swaps, and --recompute plans none without --swap");
  for (const char* const name : {"--limits", "--strategies"}) {
    if (options.has(name) && !options.compare) throw std::invalid_argument(std::string(name) + " is for --compare");
  }
  if (options.has("--plot") && !options.compare && !options.places)
    throw std::invalid_argument(
        "--plot draws what --compare finds; of one plan of --recompute there is no drawing without --places");
}

std::string text_of(const recompute::CheckmateAnswer& answer, const swap::Problem& problem) {
  std::string text = fmt::format("{} columns, {} rows, {} stages; ", answer.columns, answer.rows, answer.stages);
  text += answer.solved ? "solved" : "not solved in the time";
  if (answer.bound_ns < 0) return text + ", no bound is known";
  return text + fmt::format("; nothing in it is below {}, {:.2f} %", milliseconds(answer.bound_ns),
                            part(answer.bound_ns, problem));
}

std::string seconds_since(std::chrono::steady_clock::time_point begin) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return fmt::format("{:.2f} s{}", seconds, interrupted() ? ", interrupted: the best until then" : "");
}

// What the file says of swaps and places is what was planned.
void expect_same(const recompute::Extended& extended, const swap::PlanFile& file, const swap::Decisions& decisions) {
  if (swaps_of_lives(extended, file.decisions.swaps) != decisions.swaps)
    throw std::logic_error("a swap is of another life of its block than the one that its file says");
  if (decisions.places.empty()) return;
  std::vector<recompute::StepPlace> of_steps;
  for (std::uint32_t k = 0; k < file.recompute.size(); ++k) {
    for (const auto& [block, place] : file.recompute[k].places) of_steps.push_back({k, block, place});
  }
  if (places_of_lives(extended, file.decisions.places, of_steps) != decisions.places)
    throw std::logic_error("a place is of another life of its block than the one that its file says");
}

void write(SwapProblem& input, const recompute::Graph& graph, const Combined& plan, std::uint64_t limit,
           const std::string& path) {
  swap::PlanFile& file = input.file;
  file.launches = true;
  file.problem.layout = plan.footprint.has_value();
  file.problem.limit = limit;
  file.decisions = {};
  file.recompute.clear();
  for (const recompute::Step& step : plan.steps) {
    const bool drop = step.kind == recompute::Step::Kind::kDrop;
    file.recompute.push_back({step.before, drop, drop ? step.what : graph.launches[step.what].first});
  }
  if (plan.footprint || !plan.decisions.swaps.empty()) {
    const recompute::Extended extended = extend(file.problem, graph, plan.steps);
    file.decisions.swaps = swaps_of_blocks(extended, plan.decisions.swaps);
    if (plan.footprint) {
      const auto& places = plan.decisions.places;
      file.decisions.places.assign(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(extended.blocks()));
      for (recompute::StepPlace& one : places_of_steps(extended, places))
        file.recompute[one.step].places.push_back({one.block, std::move(one.place)});
    }
    expect_same(extended, file, plan.decisions);
  }
  std::ostringstream text;
  swap::write_plan(file, text);
  write_text(path, std::move(text).str());
}

int plan_once(const SwapPlanOptions& options, SwapProblem& input) {
  const Strategy strategy = strategy_of("--strategy", options.strategy, options.swap);
  refuse_unseen(options, {strategy});
  if (options.limit.empty() && !input.file.problem.limit) {
    throw std::invalid_argument("--recompute: expected a --limit, or --compare for several");
  }
  const std::uint64_t limit =
      options.limit.empty() ? *input.file.problem.limit : limit_of("--limit", options.limit, input.liveness.peak);
  expect_writable(options.training_curve);
  const Planner planner(options, input);
  const auto begin = std::chrono::steady_clock::now();
  auto found = planner.plan(strategy, limit);
  const std::string seconds = seconds_since(begin);
  if (!options.training_curve.empty()) write_text(options.training_curve, planner.learned().training_curve());
  if (!found && planner.checkmate_answer().too_large) {
    throw std::runtime_error(
        fmt::format("{}: the iteration is too large for it: its program has more than {} columns (variables) within {}",
                    strategy.name, strategy.rounded ? kMostRelaxed : kMostWhole, mib(limit)));
  }
  if (!found) {
    if (const char* const why = interrupted() ? nullptr : planner.why_there_is_none(limit)) {
      fmt::print(stderr, "memoptctl: no plan is within {}: {}\n", mib(limit), why);
    }
    if (interrupted()) throw std::runtime_error("interrupted before there was a plan within " + mib(limit));
    if (strategy.checkmate) {
      const bool solved = planner.checkmate_answer().solved;
      fmt::print(stderr, "memoptctl: {} finds no plan within {}{}\n", strategy.name, mib(limit),
                 !solved            ? fmt::format(" in {} s", kLongest.count())
                 : strategy.rounded ? ": no solution that it rounds is one"
                                    : ": its program has no solution");
      return kExitInfeasible;
    }
    std::optional<Planner::Least> least = planner.least_limit(strategy, limit);
    if (interrupted()) throw std::runtime_error("interrupted before there was a plan within " + mib(limit));
    // Looking for more than it was given, a search may end with less. What is published is shown as it is.
    if (least && strategy.searches() && bytes_of(least->plan) <= limit) {
      found = std::move(least->plan);
    } else {
      fmt::print(
          stderr, "memoptctl: {} finds no plan within {}{}\n", strategy.name, mib(limit),
          least ? fmt::format("; the least limit it reaches is {} ({} bytes)", mib(least->limit), least->limit) : "");
      return kExitInfeasible;
    }
  }
  const swap::Problem& problem = input.file.problem;
  const recompute::Graph& graph = planner.graph();
  std::size_t blocks = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) blocks += graph.can_be_made(b) ? 1 : 0;
  std::vector<std::pair<std::string, std::string>> rows;
  if (!input.times.empty()) rows.emplace_back("times", input.times);
  rows.emplace_back("footprint", found->footprint ? fmt::format("{}; load {}", mib(*found->footprint), mib(found->load))
                                                  : mib(found->load) + " (load only)");
  const auto of_period = [&](double ns) { return fmt::format("{}, {:.2f} %", milliseconds(ns), part(ns, problem)); };
  rows.emplace_back("added time", fmt::format("{} an iteration of {}, {:.2f} %", milliseconds(found->added_ns()),
                                              milliseconds(problem.period), part(found->added_ns(), problem)));
  // The bound knows no swaps.
  std::optional<RecomputeBound> bound;
  if (options.swap) {
    rows.back().second +=
        fmt::format("; replays {}, waits {}", of_period(found->cost.added_ns), of_period(found->waits_ns));
  } else if (options.bound && !interrupted()) {
    bound = planner.bound(limit);
    rows.back().second += "; bound " + of_period(bound->ns);
  }
  rows.emplace_back("peak load", mib(input.liveness.peak));
  rows.emplace_back("replays", fmt::format("{} of {} launches", found->cost.replays, graph.launches.size()));
  rows.emplace_back(
      "drops", fmt::format("{}; {} of {} blocks can be made again", found->cost.drops, blocks, problem.blocks.size()));
  if (options.swap) {
    rows.emplace_back("swaps", fmt::format("{}; {} out, {} in", found->decisions.swaps.size(), mib(found->bytes_out),
                                           mib(found->bytes_in)));
    rows.emplace_back("machine", machine_text(problem.machine));
  }
  if (strategy.checkmate) rows.emplace_back("program", text_of(planner.checkmate_answer(), problem));
  rows.emplace_back("planning time", seconds);
  if (strategy.learned) {
    for (auto& row : planner.learned().rows()) rows.push_back(std::move(row));
  }
  if (bound && !bound->missing.empty()) rows.emplace_back("no linear bound", bound->missing);
  for (const auto& [name, value] : rows) fmt::print("{:<15}  {}\n", name, value);
  if (!options.plot.empty()) {
    const recompute::Extended extended = recompute::extend_with_layout(problem, graph, found->steps, limit);
    const PlanDrawing drawing{
        .title = problem.name.empty() ? options.file : problem.name,
        .facts =
            fmt::format("{} of a peak load of {}, {} added to an iteration of {}, {} replays, {} swaps",
                        mib(found->footprint.value_or(0)), mib(input.liveness.peak), milliseconds(found->added_ns()),
                        milliseconds(problem.period), found->cost.replays, found->decisions.swaps.size()),
        .times = input.times,
        .file = options.file};
    write_text(options.plot, plan_page(drawing, extended.problem, found->decisions, &extended));
  }
  if (!options.json.empty()) write(input, graph, *found, limit, options.json);
  return 0;
}

}  // namespace

int recompute_plan(const SwapPlanOptions& options, input::File& file) {
  try {
    refuse_others(options);
    expect_writable(options.json);
    expect_plot(options.plot);
    std::optional<SwapProblem> input = read_problem(options, file);
    if (!input) return kExitNoIteration;
    refuse_for_known(options, *input);
    if (input->observed) fmt::print("{}", know_launches(options, file, *input));
    if (!input->launches) {
      throw std::runtime_error(file.name() +
                               ": what its launches write is not known; --recompute is for recordings, text traces, "
                               "logs for DTR's simulator, kernel tables of G10's, and iterations with launches "
                               "(memopt-plan-2)");
    }
    if (input->file.problem.lazy_malloc)
      throw std::runtime_error(file.name() +
                               ": expected lazy_malloc to be false, as --recompute plans no other iterations");
    return options.compare ? compare_recomputation(options, *input) : plan_once(options, *input);
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "memoptctl: {}\n", error.what());
    return kExitWrongUse;
  }
}

}  // namespace memopt::tools
