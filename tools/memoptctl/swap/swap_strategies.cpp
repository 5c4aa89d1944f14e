#include "tools/memoptctl/swap/swap_strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/places/layout_problem.h"
#include "planner/swap/places/timeline.h"
#include "planner/swap/search/ladder.h"
#include "planner/swap/search/search.h"
#include "planner/swap/simulation/verify.h"
#if MEMOPT_HAS_TUNED_SWAP
#include "planner/swap/strategies/tuned_swap.h"
#endif
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"

namespace memopt::tools {
namespace {

using swap::kNever;

constexpr bool kHasTunedSwap = MEMOPT_HAS_TUNED_SWAP;
[[maybe_unused]] constexpr double kTuning = 60;  // seconds

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

// A plan without swaps.
swap::AutoSwapPlan unswapped(const swap::Problem& problem, const swap::Liveness& liveness,
                             const layout::Limits& limits) {
  swap::AutoSwapPlan plan;
  if (problem.layout) {
    const swap::LayoutProblem layout = swap::make_layout_problem(problem, liveness, {});
    const layout::Outcome outcome = layout::solve(layout.problem, limits);
    if (!outcome.found(layout.problem.buffers.size()))
      throw std::runtime_error("no layout was found in the time given");
    swap::set_places(problem, layout, outcome.solution, plan.decisions);
    // A file says which instance lies where: others may lie between the turns of a place.
    if (swap::has_turns(plan.decisions)) {
      auto in_step = swap::lay_out_in_time(problem, liveness, plan.decisions, limits);
      if (in_step && swap::footprint_of(problem, *in_step) < swap::footprint_of(problem, plan.decisions))
        plan.decisions = std::move(*in_step);
    }
    plan.footprint = swap::footprint_of(problem, plan.decisions);
  } else {
    plan.footprint = liveness.peak;
  }
  plan.feasible = plan.footprint <= problem.limit.value_or(kNever);
  return plan;
}

swap::AutoSwapPlan searched(const swap::Problem& problem, const swap::Liveness& liveness,
                            const SwapPlanOptions& options) {
  swap::SearchLimits limits;
  limits.time = nanoseconds(options.seconds);
  limits.threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  limits.seed = options.seed;
  limits.in_step = true;
  limits.cancelled = &end_at_interrupt();
  const bool time = options.objective.empty() ? problem.limit.has_value() : options.objective == "time";
  const swap::Objective objective = time ? swap::Objective::kTime : swap::Objective::kFootprint;
  const bool counted = options.has("--attempts");
  if (counted) limits.attempts = options.attempts;
  swap::SearchPlan found = counted ? swap::search_by_steps(problem, liveness, objective, limits)
                                   : swap::search(problem, liveness, objective, limits);
  swap::AutoSwapPlan plan;
  plan.feasible = found.feasible;
  plan.decisions = std::move(found.decisions);
  plan.footprint = found.footprint;
  plan.candidates = found.candidates;
  return plan;
}

swap::AutoSwapPlan plan_by(const std::string& strategy, const swap::Problem& problem, const swap::Liveness& liveness,
                           const SwapPlanOptions& options) {
  if (strategy == "memopt") return searched(problem, liveness, options);
  layout::Limits limits;
  limits.seed = options.seed;
  limits.cancelled = &end_at_interrupt();
  if (options.layout_seconds > 0) limits.time = nanoseconds(options.layout_seconds);
  if (strategy == "none") return unswapped(problem, liveness, limits);
#if MEMOPT_HAS_TUNED_SWAP
  if (strategy == "autoswap:tuned") {
    const double seconds = options.has("--time-budget") ? options.seconds : kTuning;
    return swap::tuned_swap(problem, liveness, limits, {.seed = limits.seed, .time = nanoseconds(seconds)}).plan;
  }
#endif
  for (const swap::Score score : swap::kScores) {
    if (strategy == fmt::format("autoswap:{}", swap::name_of(score))) {
      return swap::auto_swap(problem, liveness, score, limits);
    }
  }
  throw std::logic_error("no strategy " + strategy);
}

}  // namespace

const std::vector<SwapStrategy>& swap_strategies() {
  static const std::vector<SwapStrategy> all = [] {
    std::vector<SwapStrategy> list = {{"memopt", true, {}}, {"none", false, {}}};
    for (const swap::Score score : swap::kScores) {
      list.push_back({fmt::format("autoswap:{}", swap::name_of(score)), false, {}});
    }
    list.push_back(
        {"autoswap:tuned", false, kHasTunedSwap ? "" : "not in this build: Eigen (libeigen3-dev) was not there"});
    return list;
  }();
  return all;
}

const SwapStrategy& find_strategy(const std::string& option, const std::string& name) {
  const auto& all = swap_strategies();
  const auto found = std::find_if(all.begin(), all.end(), [&](const SwapStrategy& one) { return one.name == name; });
  if (found == all.end()) {
    std::vector<std::string> names{"layout"};
    for (const SwapStrategy& one : all) names.push_back(one.name);
    throw std::invalid_argument(
        fmt::format("{}: expected memopt, none or autoswap:doa, :aoa, :wdoa, :swdoa or :tuned, not {}{}", option,
                    printable(name), did_you_mean(name, names)));
  }
  if (!found->missing.empty()) throw std::runtime_error(fmt::format("{} is {}", name, found->missing));
  return *found;
}

void refuse_ignored(const SwapPlanOptions& options, const std::vector<const SwapStrategy*>& strategies) {
  if (options.has("--attempts") && options.has("--time-budget"))
    throw std::invalid_argument("--attempts and --time-budget: expected one of them, as a search is counted or timed");
  const auto none = [&](bool searches) {
    return std::none_of(strategies.begin(), strategies.end(),
                        [&](const SwapStrategy* one) { return one->searches == searches; });
  };
  std::string names;
  for (const SwapStrategy* const strategy : strategies) names += (names.empty() ? "" : ", ") + strategy->name;
  const auto refuse = [&](const char* option, const char* whose) {
    if (!options.has(option)) return;
    throw std::invalid_argument(fmt::format("{} is for {}; {} does not look at it", option, whose, names));
  };
  if (none(true)) {
    for (const char* const option : {"--threads", "--objective", "--clean-drops", "--remap-time", "--attempts"})
      refuse(option, "the strategy memopt");
    const auto is_tuned = [](const SwapStrategy* one) { return one->name == "autoswap:tuned"; };
    if (std::none_of(strategies.begin(), strategies.end(), is_tuned))
      refuse("--time-budget", "memopt and autoswap:tuned");
  }
  if (none(false)) refuse("--layout-time", "none and autoswap");
}

SwapPlan plan_swaps(const SwapStrategy& strategy, const swap::Problem& problem, const swap::Liveness& liveness,
                    const SwapPlanOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  swap::AutoSwapPlan found = plan_by(strategy.name, problem, liveness, options);
  SwapPlan plan;
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  plan.feasible = found.feasible;
  plan.decisions = std::move(found.decisions);
  plan.footprint = found.footprint;
  plan.candidates = found.candidates;
  if (!plan.feasible) return plan;
  plan.report = swap::verify(problem, plan.decisions);
  if (plan.report.fault) {
    throw std::runtime_error("a plan of " + strategy.name + " does not hold: " + *plan.report.fault);
  }
  // A search has looked for it.
  if (!problem.layout && !strategy.searches) plan.footprint = swap::least_limit(problem, liveness, plan.decisions);
  return plan;
}

}  // namespace memopt::tools
