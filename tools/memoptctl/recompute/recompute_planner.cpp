#include "tools/memoptctl/recompute/recompute_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

#include "planner/recompute/bounds/bound.h"
#include "planner/recompute/places/descent.h"
#include "planner/recompute/places/placed.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"

namespace memopt::tools {
namespace {

using recompute::Combined;

constexpr double kBoundSeconds = 5;  // where --bound-time does not say
// Of the peak load, to which the least limit is named, and the part of the time that each step to it has.
constexpr std::uint64_t kPrecision = 256;
constexpr double kHalves = 8;
// With places, of one strategy that plans by load alone.
constexpr std::uint64_t kMostPlans = 16;

Combined without_swaps(recompute::Steps steps, recompute::Cost cost) {
  Combined plan;
  plan.steps = std::move(steps);
  plan.load = cost.peak;
  plan.cost = std::move(cost);
  return plan;
}

std::chrono::steady_clock::time_point in_a_while() { return std::chrono::steady_clock::now() + kLongest; }
bool is_over(std::chrono::steady_clock::time_point end) {
  return interrupted() || std::chrono::steady_clock::now() > end;
}

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

Combined checked(const Strategy& strategy, Combined found, std::uint64_t limit) {
  if (found.cost.fault) throw std::runtime_error("a plan of " + strategy.name + " does not hold: " + *found.cost.fault);
  if (bytes_of(found) > limit) throw std::runtime_error("a plan of " + strategy.name + " is above the limit");
  return found;
}

}  // namespace

bool Strategy::looks_at(const std::string& option) const {
  if (option == "--threads") return searches();
  if (option == "--time-budget") return searches() || learned == Learned::kDqn;
  if (option == "--seed") return searches() || learned;
  if (option == "--layout-time") return !searches();
  return learned.has_value();  // --episodes, --training-curve
}

void refuse_unseen(const SwapPlanOptions& options, const std::vector<Strategy>& strategies) {
  const std::pair<const char*, bool> given[] = {{"--time-budget", options.has("--time-budget")},
                                                {"--threads", options.has("--threads")},
                                                {"--seed", options.has("--seed")},
                                                {"--layout-time", options.has("--layout-time")},
                                                {"--episodes", options.episodes != 0},
                                                {"--training-curve", !options.training_curve.empty()}};
  for (const auto& [name, is_given] : given) {
    const auto looks = [option = name](const Strategy& one) { return one.looks_at(option); };
    if (!is_given || std::any_of(strategies.begin(), strategies.end(), looks)) continue;
    throw std::invalid_argument(fmt::format("{}: {} not look at it", name,
                                            strategies.size() == 1
                                                ? strategies.front().name + " does"
                                                : std::string("the strategies that are asked for do")));
  }
}

std::uint64_t bytes_of(const Combined& plan) { return plan.footprint.value_or(plan.load); }

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
  std::vector<std::string> known{"dqn", "dqn:transfer"};
  for (const Strategy& one : all_strategies(swaps)) {
    known.push_back(one.name);
    if (one.name == name) {
      if (one.checkmate && !checkmate_missing().empty())
        throw std::runtime_error(fmt::format("{} is {}", name, checkmate_missing()));
      return one;
    }
    names += (names.empty() ? "" : ", ") + one.name;
  }
  throw std::invalid_argument(fmt::format("{}: expected {}, dqn or dqn:transfer, not {}{}", option, names,
                                          printable(name), did_you_mean(name, known)));
}

Planner::Planner(const SwapPlanOptions& options, const SwapProblem& input)
    : options_(options),
      problem_(input.file.problem),
      liveness_(input.liveness),
      graph_(recompute::make_graph(problem_, liveness_)),
      learned_(options) {}

RecomputeBound Planner::bound(std::uint64_t limit) const {
  return recompute_bound(problem_, liveness_, graph_, limit,
                         options_.has("--bound-time") ? options_.bound_seconds : kBoundSeconds);
}

const char* Planner::why_there_is_none(std::uint64_t limit) const {
  if (options_.swap) return nullptr;  // what can't be made again may be swapped
  const auto end = in_a_while();
  const auto ends = [&] { return is_over(end); };
  if (std::isinf(recompute::least_added_ns(problem_, liveness_, graph_, limit, ends))) {
    return "what can't be made again, or one launch touches, is more";
  }
  return options_.bound && std::isinf(bound(limit).ns) ? "of what has to leave, not all can come back" : nullptr;
}

std::optional<Combined> Planner::plan(const Strategy& strategy, std::uint64_t limit) const {
  return plan(strategy, limit, options_.seconds);
}

std::optional<Planner::Least> Planner::least_limit(const Strategy& strategy, std::uint64_t too_low) const {
  std::uint64_t enough = liveness_.peak;
  if (too_low >= enough) return std::nullopt;
  auto best = plan(strategy, enough, options_.seconds / kHalves);
  if (!best) return std::nullopt;
  const std::uint64_t precision = std::max<std::uint64_t>(1, liveness_.peak / kPrecision);
  // A plan may need less than the limit that was too low for another one.
  while (enough > too_low && enough - too_low > precision && !interrupted()) {
    const std::uint64_t half = too_low + (enough - too_low) / 2;
    if (auto found = plan(strategy, half, options_.seconds / kHalves)) {
      enough = std::min(half, bytes_of(*found));
      best = std::move(found);
    } else {
      too_low = half;
    }
  }
  return Least{enough, std::move(*best)};
}

std::optional<Combined> Planner::plan(const Strategy& strategy, std::uint64_t limit, double seconds) const {
  auto found = options_.places ? plan_with_places(strategy, limit, seconds) : plan_by_load(strategy, limit, seconds);
  if (!found) return std::nullopt;
  return checked(strategy, std::move(*found), limit);
}

recompute::SearchLimits Planner::search_limits(double seconds) const {
  recompute::SearchLimits limits;
  limits.time = nanoseconds_of(seconds);
  limits.threads = options_.threads != 0 ? options_.threads : std::max(1U, std::thread::hardware_concurrency());
  limits.seed = options_.seed;
  limits.cancelled = &cancelled_;
  return limits;
}

std::optional<Combined> Planner::plan_with_places(const Strategy& strategy, std::uint64_t limit, double seconds) const {
  if (strategy.searches()) {
    return recompute::plan_with_places(problem_, liveness_, graph_, limit, strategy.means, search_limits(seconds));
  }
  recompute::DescentLimits descent;
  descent.time = kLongest;
  descent.plans = kMostPlans;
  descent.cancelled = &cancelled_;
  descent.layouts.brief.time = nanoseconds_of(options_.layout_seconds);
  descent.layouts.longer = descent.layouts.brief;
  return recompute::descend(
      problem_, graph_, limit,
      [&](std::uint64_t load, double part) { return plan_by_load(strategy, load, part * seconds); }, descent);
}

std::optional<Combined> Planner::plan_by_load(const Strategy& strategy, std::uint64_t limit, double seconds) const {
  if (strategy.learned)
    return learned_.plan(*strategy.learned, problem_, liveness_, graph_, limit, seconds / options_.seconds);
  if (!strategy.searches()) {
    auto steps = published(strategy, limit);
    if (!steps) return std::nullopt;
    recompute::Cost cost = recompute::find_cost(problem_, liveness_, graph_, *steps);
    return without_swaps(std::move(*steps), std::move(cost));
  }
  const recompute::SearchLimits limits = search_limits(seconds);
  if (strategy.means) return recompute::combine(problem_, liveness_, graph_, limit, *strategy.means, limits);
  auto found = recompute::search(problem_, liveness_, graph_, limit, limits);
  if (!found) return std::nullopt;
  return without_swaps(std::move(found->steps), std::move(found->cost));
}

std::optional<recompute::Steps> Planner::published(const Strategy& strategy, std::uint64_t limit) const {
  const auto end = in_a_while();
  const auto ends = [&] { return is_over(end); };
  if (strategy.checkmate) {
    const double seconds = std::chrono::duration<double>(kLongest).count();
    CheckmateRun run =
        run_checkmate(problem_, {limit, strategy.rounded, seconds, strategy.rounded ? kMostRelaxed : kMostWhole}, ends);
    checkmate_ = run.answer;
    return std::move(run.steps);
  }
  if (strategy.chen) return recompute::chen(problem_, liveness_, graph_, *strategy.chen, limit, ends);
  const auto policy = recompute::make_dtr(problem_, graph_, *strategy.heuristic);
  return recompute::run_online(problem_, liveness_, graph_, limit, *policy,
                               recompute::kMostIterations * problem_.period, ends);
}

double part(double ns, const swap::Problem& problem) { return problem.period > 0 ? 100 * ns / problem.period : 0; }

}  // namespace memopt::tools
