#include "tools/memoptctl/recompute/recompute_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "planner/json/tree.h"
#include "planner/recompute/bounds/bound.h"
#include "planner/recompute/combined/combine.h"
#include "planner/recompute/combined/extended.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/recompute/online/dtr.h"
#include "planner/recompute/published/chen.h"
#include "planner/recompute/search/search.h"
#include "planner/swap/files/plan_file.h"
#include "planner/swap/files/trade_off_plot.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/recompute/checkmate_process.h"
#include "tools/memoptctl/recompute/learned_strategy.h"
#include "tools/memoptctl/recompute/recompute_bound.h"
#include "tools/memoptctl/swap/swap_problem.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

constexpr int kExitWrongUse = 2;
constexpr int kExitInfeasible = 3;
constexpr int kExitNoIteration = 4;
constexpr const char* kFormat = "memopt-recompute-compare-1";
constexpr int kParts[] = {90, 80, 70, 60, 50, 40, 30, 20, 10};  // of the peak load, percent
// A published policy whose replays take longer is given up. A strategy that takes longer itself ends with the best
// until then.
constexpr double kMostIterations = 20;
constexpr std::chrono::seconds kLongest{60};
constexpr double kBoundSeconds = 5;     // where --bound-time does not say
constexpr std::size_t kCellWidth = 10;  // at least
// Columns of Checkmate's program, above which a minute is not enough for anything.
constexpr std::uint64_t kMostWhole = 60000, kMostRelaxed = 100000;
// Of the peak load, to which the least limit is named, and the part of the time that each step to it has.
constexpr std::uint64_t kPrecision = 256;
constexpr double kHalves = 8;

struct Strategy {
  std::string name;
  std::optional<recompute::Heuristic> heuristic = {};
  std::optional<recompute::Chen> chen = {};
  std::optional<recompute::Means> means = {};  // of our own; none: nothing is swapped
  bool checkmate = false, rounded = false;
  std::optional<Learned> learned = {};  // asked for by name only

  bool searches() const { return !heuristic && !chen && !checkmate && !learned; }  // our own
};

// With swaps, our own is there three times: both together, and each alone.
std::vector<Strategy> all_strategies(bool swaps) {
  std::vector<Strategy> all = {{.name = "memopt"}};
  if (swaps) {
    all.front().means = recompute::Means::kBoth;
    all.push_back({.name = "memopt:recompute"});
    all.push_back({.name = "memopt:swap", .means = recompute::Means::kSwaps});
  }
  for (const recompute::Heuristic heuristic : recompute::kHeuristics) {
    const std::string name(recompute::name_of(heuristic));
    all.push_back({.name = heuristic == recompute::Heuristic::kDtr ? name : "dtr:" + name, .heuristic = heuristic});
  }
  for (const recompute::Chen chen : recompute::kChens) {
    all.push_back({.name = "chen:" + std::string(recompute::name_of(chen)), .chen = chen});
  }
  all.push_back({.name = "checkmate", .checkmate = true});
  all.push_back({.name = "checkmate:lp", .checkmate = true, .rounded = true});
  return all;
}

Strategy strategy_of(const char* option, const std::string& name, bool swaps) {
  if (const auto learned = learned_strategy(name)) return {.name = name, .learned = learned};
  std::string names;
  for (const Strategy& one : all_strategies(swaps)) {
    if (one.name == name) {
      if (one.checkmate && !checkmate_missing().empty())
        throw std::runtime_error(fmt::format("{} is {}", name, checkmate_missing()));
      return one;
    }
    names += (names.empty() ? "" : ", ") + one.name;
  }
  throw std::invalid_argument(
      fmt::format("{}: expected {}, dqn or dqn:transfer, not {}", option, names, printable(name)));
}

void refuse_others(const SwapPlanOptions& options) {
  for (const char* const name : {"--objective", "--clean-drops", "--remap-time", "--layout-time"}) {
    if (options.has(name))
      throw std::invalid_argument(std::string(name) + " is for swaps alone, and not for --recompute");
  }
  for (const char* const name : {"--no-bound", "--bound-time"}) {
    if (options.has(name) && options.swap)
      throw std::invalid_argument(std::string(name) + ": there is no bound of plans that swap as well");
  }
  if (options.has("--machine") && !options.swap)
    throw std::invalid_argument("--machine is for swaps, and --recompute plans none without --swap");
  for (const char* const name : {"--limits", "--strategies"}) {
    if (options.has(name) && !options.compare) throw std::invalid_argument(std::string(name) + " is for --compare");
  }
  if (options.has("--plot") && !options.compare)
    throw std::invalid_argument("--plot draws what --compare finds; of one plan of --recompute there is no drawing");
}

using recompute::Combined;  // also of plans without swaps

class Planner {
 public:
  Planner(const SwapPlanOptions& options, const SwapProblem& input)
      : options_(options),
        problem_(input.file.problem),
        liveness_(input.liveness),
        graph_(recompute::make_graph(problem_, liveness_)),
        learned_(options) {}

  const recompute::Graph& graph() const { return graph_; }
  const LearnedPlanner& learned() const { return learned_; }

  RecomputeBound bound(std::uint64_t limit) const {
    return recompute_bound(problem_, liveness_, graph_, limit,
                           options_.has("--bound-time") ? options_.bound_seconds : kBoundSeconds);
  }

  // Null: there may be a plan.
  const char* why_there_is_none(std::uint64_t limit) const {
    const auto end = in_a_while();
    const auto ends = [&] { return is_over(end); };
    if (std::isinf(recompute::least_added_ns(problem_, liveness_, graph_, limit, ends))) {
      return "what can't be made again, or one launch touches, is more";
    }
    return options_.bound && std::isinf(bound(limit).ns) ? "of what has to leave, not all can come back" : nullptr;
  }

  std::optional<Combined> plan(const Strategy& strategy, std::uint64_t limit) const {
    return plan(strategy, limit, options_.seconds);
  }

  // Of the last plan by Checkmate.
  const recompute::CheckmateAnswer& checkmate_answer() const { return checkmate_; }

  // About the least limit within which it finds a plan, above one within which it found none: by halves.
  std::uint64_t least_limit(const Strategy& strategy, std::uint64_t too_low) const {
    std::uint64_t enough = liveness_.peak;
    const std::uint64_t precision = std::max<std::uint64_t>(1, liveness_.peak / kPrecision);
    while (enough - too_low > precision && !interrupted()) {
      const std::uint64_t half = too_low + (enough - too_low) / 2;
      if (auto found = plan(strategy, half, options_.seconds / kHalves)) {
        enough = std::min(half, found->load);
      } else {
        too_low = half;
      }
    }
    return enough;
  }

 private:
  std::optional<Combined> plan(const Strategy& strategy, std::uint64_t limit, double seconds) const {
    if (strategy.learned) {
      auto found = learned_.plan(*strategy.learned, problem_, liveness_, graph_, limit, seconds / options_.seconds);
      if (!found) return std::nullopt;
      return checked(strategy, std::move(*found), limit);
    }
    if (!strategy.searches()) {
      auto steps = published(strategy, limit);
      if (!steps) return std::nullopt;
      recompute::Cost cost = recompute::find_cost(problem_, liveness_, graph_, *steps);
      return checked(strategy, without_swaps({std::move(*steps), std::move(cost)}), limit);
    }
    recompute::SearchLimits limits;
    limits.time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
    limits.threads = options_.threads != 0 ? options_.threads : std::max(1U, std::thread::hardware_concurrency());
    limits.seed = options_.seed;
    limits.cancelled = &cancelled_;
    if (strategy.means) {
      auto found = recompute::combine(problem_, liveness_, graph_, limit, *strategy.means, limits);
      if (!found) return std::nullopt;
      return checked(strategy, std::move(*found), limit);
    }
    auto found = recompute::search(problem_, liveness_, graph_, limit, limits);
    if (!found) return std::nullopt;
    return checked(strategy, without_swaps(std::move(*found)), limit);
  }

  static Combined without_swaps(recompute::Found found) {
    const std::uint64_t load = found.cost.peak;
    Combined plan;
    plan.steps = std::move(found.steps);
    plan.cost = std::move(found.cost);
    plan.load = load;
    return plan;
  }

  std::optional<recompute::Steps> published(const Strategy& strategy, std::uint64_t limit) const {
    const auto end = in_a_while();
    const auto ends = [&] { return is_over(end); };
    if (strategy.checkmate) {
      const double seconds = std::chrono::duration<double>(kLongest).count();
      CheckmateRun run = run_checkmate(
          problem_, {limit, strategy.rounded, seconds, strategy.rounded ? kMostRelaxed : kMostWhole}, ends);
      checkmate_ = run.answer;
      return std::move(run.steps);
    }
    if (strategy.chen) return recompute::chen(problem_, liveness_, graph_, *strategy.chen, limit, ends);
    const auto policy = recompute::make_dtr(problem_, graph_, *strategy.heuristic);
    return recompute::run_online(problem_, liveness_, graph_, limit, *policy, kMostIterations * problem_.period, ends);
  }

  static std::chrono::steady_clock::time_point in_a_while() { return std::chrono::steady_clock::now() + kLongest; }
  static bool is_over(std::chrono::steady_clock::time_point end) {
    return interrupted() || std::chrono::steady_clock::now() > end;
  }

  static Combined checked(const Strategy& strategy, Combined found, std::uint64_t limit) {
    if (found.cost.fault)
      throw std::runtime_error("a plan of " + strategy.name + " does not hold: " + *found.cost.fault);
    if (found.load > limit) throw std::runtime_error("a plan of " + strategy.name + " is above the limit");
    return found;
  }

  const SwapPlanOptions& options_;
  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const recompute::Graph graph_;
  mutable recompute::CheckmateAnswer checkmate_;
  mutable LearnedPlanner learned_;  // keeps what was learned
  const std::atomic<bool>& cancelled_ = end_at_interrupt();
};

double part(double ns, const swap::Problem& problem) { return problem.period > 0 ? 100 * ns / problem.period : 0; }

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

void write(SwapProblem& input, const recompute::Graph& graph, const Combined& plan, std::uint64_t limit,
           const std::string& path) {
  swap::PlanFile& file = input.file;
  file.launches = true;
  file.problem.layout = false;
  file.problem.limit = limit;
  file.decisions = {};
  if (!plan.decisions.swaps.empty())
    file.decisions.swaps = swaps_of_blocks(extend(file.problem, graph, plan.steps), plan.decisions.swaps);
  file.recompute.clear();
  for (const recompute::Step& step : plan.steps) {
    const bool drop = step.kind == recompute::Step::Kind::kDrop;
    file.recompute.push_back({step.before, drop, drop ? step.what : graph.launches[step.what].first});
  }
  std::ostringstream text;
  swap::write_plan(file, text);
  write_text(path, std::move(text).str());
}

int plan_once(const SwapPlanOptions& options, SwapProblem& input) {
  const Strategy strategy = strategy_of("--strategy", options.strategy, options.swap);
  for (const char* const name : {"--time-budget", "--threads", "--seed"}) {
    const bool looks = strategy.searches() || (strategy.learned && std::string(name) != "--threads");
    if (!looks && options.has(name)) {
      throw std::invalid_argument(
          fmt::format("{} is for the strategy memopt; {} does not look at it", name, strategy.name));
    }
  }
  if (!strategy.learned && (options.episodes != 0 || !options.training_curve.empty())) {
    throw std::invalid_argument("--episodes and --training-curve are for dqn and dqn:transfer; " + strategy.name +
                                " does not look at them");
  }
  if (options.limit.empty() && !input.file.problem.limit) {
    throw std::invalid_argument("--recompute: expected a --limit, or --compare for several");
  }
  const std::uint64_t limit =
      options.limit.empty() ? *input.file.problem.limit : limit_of("--limit", options.limit, input.liveness.peak);
  expect_writable(options.training_curve);
  const Planner planner(options, input);
  const auto begin = std::chrono::steady_clock::now();
  const auto found = planner.plan(strategy, limit);
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
      const bool none = planner.checkmate_answer().solved && !strategy.rounded;
      fmt::print(stderr, "memoptctl: {} finds no plan within {}{}\n", strategy.name, mib(limit),
                 none ? ": its program has no solution" : fmt::format(" in {} s", kLongest.count()));
      return kExitInfeasible;
    }
    const std::uint64_t least = planner.least_limit(strategy, limit);
    if (interrupted()) throw std::runtime_error("interrupted before there was a plan within " + mib(limit));
    fmt::print(stderr, "memoptctl: {} finds no plan within {}; the least limit it reaches is {} ({} bytes)\n",
               strategy.name, mib(limit), mib(least), least);
    return kExitInfeasible;
  }
  const swap::Problem& problem = input.file.problem;
  const recompute::Graph& graph = planner.graph();
  std::size_t blocks = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) blocks += graph.can_be_made(b) ? 1 : 0;
  std::vector<std::pair<std::string, std::string>> rows;
  if (!input.times.empty()) rows.emplace_back("times", input.times);
  rows.emplace_back("footprint", mib(found->load) + " (load only)");
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
  if (!options.json.empty()) write(input, graph, *found, limit, options.json);
  return 0;
}

std::vector<Strategy> compared_strategies(const SwapPlanOptions& options) {
  std::vector<Strategy> result;
  if (options.strategies.empty()) {
    // But those that take a minute for each limit.
    for (Strategy& one : all_strategies(options.swap)) {
      if (!one.checkmate) result.push_back(std::move(one));
    }
    return result;
  }
  for (const std::string& name : options.strategies) result.push_back(strategy_of("--strategies", name, options.swap));
  return result;
}

struct Row {
  std::size_t number = 0;
  std::uint64_t limit = 0;
  std::vector<std::optional<Combined>> plans;  // by strategy, without what they do
  std::optional<RecomputeBound> bound;         // none with swaps, of which it knows nothing
};

std::size_t width(const Strategy& strategy) { return std::max(kCellWidth, strategy.name.size() + 2); }

void print_row(const Row& row, const std::vector<Strategy>& strategies, const SwapProblem& input) {
  const double peak = static_cast<double>(std::max<std::uint64_t>(1, input.liveness.peak));
  fmt::print("{:>11} {:>7}", mib(row.limit), fmt::format("{:.0f} %", 100 * static_cast<double>(row.limit) / peak));
  if (row.bound) {
    const double ns = row.bound->ns;
    fmt::print("{:>{}}", std::isinf(ns) ? "infinite" : fmt::format("{:.2f} %", part(ns, input.file.problem)),
               kCellWidth);
  }
  for (std::size_t k = 0; k < row.plans.size(); ++k) {
    const auto& plan = row.plans[k];
    fmt::print("{:>{}}", plan ? fmt::format("{:.2f} %", part(plan->added_ns(), input.file.problem)) : "-",
               width(strategies[k]));
  }
  fmt::print("\n");
}

void write_comparison(const std::vector<Row>& rows, const std::vector<Strategy>& strategies, const SwapProblem& input,
                      bool swaps, const std::string& path) {
  nlohmann::json limits = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json plans = nlohmann::json::object();
    for (std::size_t k = 0; k < row.plans.size(); ++k) {
      nlohmann::json& entry = plans[strategies[k].name];
      const auto& plan = row.plans[k];
      if (!plan) continue;
      entry = {{"footprint", plan->load},
               {"added_ns", plan->added_ns()},
               {"replays", plan->cost.replays},
               {"drops", plan->cost.drops}};
      if (swaps) entry.update({{"waits_ns", plan->waits_ns}, {"bytes_out", plan->bytes_out}});
    }
    nlohmann::json its = {{"limit", row.limit}, {"plans", plans}};
    if (row.bound) {
      const bool infeasible = std::isinf(row.bound->ns);
      its["infeasible"] = infeasible;
      its["least_added_ns_bound"] = infeasible ? nlohmann::json() : nlohmann::json(row.bound->ns);
      if (!row.bound->missing.empty()) its["no_linear_bound"] = row.bound->missing;
    }
    limits.push_back(std::move(its));
  }
  const nlohmann::json document = {{"format", kFormat},
                                   {"name", input.file.problem.name},
                                   {"period_ns", input.file.problem.period},
                                   {"peak_load", input.liveness.peak},
                                   {"limits", limits}};
  write_text(path, document.dump(1) + '\n');
}

std::string plot(const std::vector<Row>& rows, const std::vector<Strategy>& strategies, const SwapProblem& input) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<swap::TradeOffLine> lines;
  for (std::size_t k = 0; k < strategies.size(); ++k) {
    lines.push_back({strategies[k].name, {}, false});
    for (const Row& row : rows) {
      lines.back().points.push_back({row.limit, row.plans[k] ? row.plans[k]->added_ns() : kNone});
    }
  }
  swap::TradeOffLine bound{"no plan is below", {}, true};
  for (const Row& row : rows) {
    if (row.bound) bound.points.push_back({row.limit, row.bound->ns});
  }
  if (!bound.points.empty()) lines.push_back(std::move(bound));
  const swap::Problem& problem = input.file.problem;
  const std::string title =
      fmt::format("{}{} an iteration, peak load {}", problem.name.empty() ? "" : printable(problem.name) + ": ",
                  milliseconds(problem.period), mib(input.liveness.peak));
  return swap::draw_trade_off_parts(title, lines, std::max<std::uint64_t>(1, input.liveness.peak),
                                    problem.period > 0 ? problem.period : 1);
}

int compare(const SwapPlanOptions& options, const SwapProblem& input) {
  if (options.has("--limit")) throw std::invalid_argument("--limit is for one plan; --compare takes --limits");
  if (options.has("--strategy"))
    throw std::invalid_argument("--strategy is for one plan; --compare takes --strategies");
  if (!options.training_curve.empty()) throw std::invalid_argument("--training-curve is for one plan");
  const std::vector<Strategy> strategies = compared_strategies(options);
  const std::vector<std::uint64_t> limits = limits_of(options, kParts, input.liveness.peak);
  const Planner planner(options, input);
  if (!input.times.empty()) fmt::print("times      {}\n", input.times);
  const bool has_bound = options.bound && !options.swap;
  if (options.swap) fmt::print("machine    {}\n", machine_text(input.file.problem.machine));
  fmt::print("peak load  {}\niteration  {}; below: what {} to it, within a load of\n\n", mib(input.liveness.peak),
             milliseconds(input.file.problem.period), options.swap ? "replays and waits add" : "replays add");
  fmt::print("{:>19}", "limit");
  if (has_bound) fmt::print("{:>{}}", "bound", kCellWidth);
  for (const Strategy& strategy : strategies) fmt::print("{:>{}}", strategy.name, width(strategy));
  fmt::print("\n");
  // The narrowest first: what is found there holds within all others.
  std::vector<Row> rows;
  for (std::size_t k = 0; k < limits.size(); ++k) rows.push_back({k, limits[k], {}, {}});
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.limit < b.limit; });
  std::size_t done = 0;
  std::vector<std::optional<Combined>> narrower(strategies.size());
  for (; done < rows.size() && !interrupted(); ++done) {
    Row& row = rows[done];
    if (has_bound) row.bound = planner.bound(row.limit);
    for (std::size_t k = 0; k < strategies.size() && !interrupted(); ++k) {
      auto plan = planner.plan(strategies[k], row.limit);
      if (plan) {
        plan->steps.clear();
        plan->decisions = {};
      }
      if (strategies[k].searches()) {
        auto& best = narrower[k];
        if (best && (!plan || best->added_ns() < plan->added_ns())) plan = best;
        best = plan;
      }
      row.plans.push_back(std::move(plan));
    }
    // What was not asked says nothing.
    if (interrupted() && (row.plans.size() < strategies.size() || !row.plans.back())) break;
    print_row(row, strategies, input);
    std::fflush(stdout);
  }
  if (interrupted()) fmt::print("\ninterrupted: the best until then; {} of {} limits\n", done, rows.size());
  rows.resize(done);
  for (const Row& row : rows) {
    if (!row.bound || row.bound->missing.empty()) continue;
    fmt::print("\nno linear bound, but that of one launch at a time: {}\n", row.bound->missing);
    break;
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.number < b.number; });
  if (!options.json.empty()) write_comparison(rows, strategies, input, options.swap, options.json);
  if (!options.plot.empty()) write_text(options.plot, plot(rows, strategies, input));
  return 0;
}

}  // namespace

int recompute_plan(const SwapPlanOptions& options, input::File& file) {
  try {
    refuse_others(options);
    expect_writable(options.json);
    expect_writable(options.plot);
    std::optional<SwapProblem> input = read_problem(options, file);
    if (!input) return kExitNoIteration;
    if (!input->launches) {
      throw std::runtime_error(file.name() +
                               ": what its launches write is not known; --recompute is for logs for DTR's simulator, "
                               "kernel tables of G10's, and iterations with launches (memopt-plan-2)");
    }
    if (input->file.problem.lazy_malloc)
      throw std::runtime_error(file.name() +
                               ": expected lazy_malloc to be false, as --recompute plans no other iterations");
    return options.compare ? compare(options, *input) : plan_once(options, *input);
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "memoptctl: {}\n", error.what());
    return kExitWrongUse;
  }
}

}  // namespace memopt::tools
