#include "swap_plan_command.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "install_paths.h"
#include "planner/layout/solve.h"
#include "planner/swap/auto_swap.h"
#include "planner/swap/bounds_module.h"
#include "planner/swap/lives.h"
#include "planner/swap/plan_file.h"
#include "planner/swap/search/search.h"
#include "planner/swap/slab.h"
#include "planner/swap/verify.h"
#if MEMOPT_HAS_TUNED_SWAP
#include "planner/swap/tuned_swap.h"
#endif
#include "printable.h"

namespace memopt::tools {
namespace {

using swap::kNever;

constexpr int kExitWrongUse = 2;
constexpr int kExitInfeasible = 3;

std::string mib(double bytes) { return fmt::format("{:.2f} MiB", bytes / (1 << 20)); }
std::string mib(std::uint64_t bytes) { return mib(static_cast<double>(bytes)); }
std::string milliseconds(double ns) { return fmt::format("{:.3f} ms", ns / 1e6); }

swap::ModuleBounds bounds_of(const swap::Problem& problem) {
  swap::ModuleBounds bounds;
  const auto fail = [&](const std::string& why) {
    std::snprintf(bounds.failure, sizeof bounds.failure, "%s", why.c_str());
    return bounds;
  };
#if MEMOPT_HAS_SWAP_BOUNDS
  const auto path = find_beside_library(swap::kModuleFile);
  if (!path) return fail(fmt::format("{} was not found", swap::kModuleFile));
  void* const module = ::dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);  // until the process ends
  if (module == nullptr) return fail(::dlerror());
  const auto* const version = static_cast<const char*>(::dlsym(module, swap::kModuleVersion));
  void* const run = ::dlsym(module, swap::kModuleRun);
  if (run == nullptr || version == nullptr || std::strcmp(version, MEMOPT_VERSION) != 0) {
    return fail(path->string() + " is of another version");
  }
  reinterpret_cast<swap::ModuleRun>(run)(problem, problem.limit.value_or(kNever), bounds);
  return bounds;
#else
  return fail("not in this build: CLP (coinor-libclp-dev) was not there when it was configured");
#endif
}

// A plan without swaps.
swap::AutoSwapPlan unswapped(const swap::Problem& problem, const swap::Lives& lives, const layout::Limits& limits) {
  swap::AutoSwapPlan plan;
  if (problem.layout) {
    const swap::Slab slab = swap::make_slab(problem, lives, {});
    const layout::Outcome outcome = layout::solve(slab.problem, limits);
    if (!outcome.found(slab.problem.buffers.size())) throw std::runtime_error("no layout was found in the time given");
    plan.decisions.places = swap::places_of(problem, {}, slab, outcome.solution);
    plan.footprint = swap::footprint_of(problem, plan.decisions);
  } else {
    plan.footprint = lives.peak;
  }
  plan.feasible = plan.footprint <= problem.limit.value_or(kNever);
  return plan;
}

swap::AutoSwapPlan searched(const swap::Problem& problem, const swap::Lives& lives, const SwapPlanOptions& options) {
  swap::SearchLimits limits;
  limits.time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options.seconds));
  limits.threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  limits.seed = options.seed;
  const bool time = options.objective.empty() ? problem.limit.has_value() : options.objective == "time";
  swap::SearchPlan found =
      swap::search(problem, lives, time ? swap::Objective::kTime : swap::Objective::kFootprint, limits);
  swap::AutoSwapPlan plan;
  plan.feasible = found.feasible;
  plan.decisions = std::move(found.decisions);
  plan.footprint = found.footprint;
  plan.candidates = found.candidates;
  return plan;
}

std::optional<swap::AutoSwapPlan> plan_by(const SwapPlanOptions& options, const swap::Problem& problem,
                                          const swap::Lives& lives, const layout::Limits& limits) {
  const std::string& strategy = options.strategy;
  if (strategy == "memopt") return searched(problem, lives, options);
  if (strategy == "none") return unswapped(problem, lives, limits);
  if (strategy == "autoswap:tuned") {
#if MEMOPT_HAS_TUNED_SWAP
    return swap::tuned_swap(problem, lives, limits, {.seed = limits.seed}).plan;
#else
    throw std::runtime_error("autoswap:tuned is not in this build: Eigen (libeigen3-dev) was not there");
#endif
  }
  for (const swap::Score score : swap::kScores) {
    if (strategy == fmt::format("autoswap:{}", swap::name_of(score))) {
      return swap::auto_swap(problem, lives, score, limits);
    }
  }
  return std::nullopt;
}

void print(const swap::Problem& problem, const swap::Report& report, const swap::ModuleBounds* bounds,
           const swap::AutoSwapPlan& plan, double seconds) {
  const bool found = bounds != nullptr && bounds->failure[0] == 0;
  const auto bound = [&](double value, const std::string& shown) {
    return found && value >= 0 ? fmt::format(", bound {}", shown) : std::string();
  };
  std::vector<std::pair<std::string, std::string>> rows;
  const std::string held = problem.layout ? mib(plan.footprint) : mib(report.peak_resident) + " (load only)";
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
  rows.emplace_back("copy engines", fmt::format("out {:.1f} %, in {:.1f} %", 100 * report.out_utilisation,
                                                100 * report.in_utilisation));
  rows.emplace_back("planning time", fmt::format("{:.2f} s", seconds));
  if (bounds != nullptr && !found) rows.emplace_back("no bounds", bounds->failure);
  for (const auto& [name, value] : rows) fmt::print("{:<14}  {}\n", name, value);
}

}  // namespace

bool is_plan_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char first = 0;
  return file >> first && first == '{';
}

std::optional<std::uint64_t> parse_limit(const std::string& text, std::uint64_t whole) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  constexpr std::pair<const char*, double> kUnits[] = {{"", 1},          {"B", 1},        {"K", 1 << 10},
                                                       {"KiB", 1 << 10}, {"M", 1 << 20},  {"MiB", 1 << 20},
                                                       {"G", 1 << 30},   {"GiB", 1 << 30}};
  double bytes = -1;
  if (unit == "%") bytes = number / 100 * static_cast<double>(whole);
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) bytes = number * factor;
  }
  if (bytes < 0 || bytes > 0x1p62) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

int swap_plan(const SwapPlanOptions& options) {
  swap::PlanFile file = swap::read_plan(options.file);
  swap::Problem& problem = file.problem;
  if (!options.limit.empty() && !problem.limit) problem.limit = 0;  // until it is known; some problems need one
  const swap::Lives lives = swap::find_lives(problem);
  if (!options.limit.empty()) {
    problem.limit = parse_limit(options.limit, lives.peak);
    if (!problem.limit) {
      fmt::print(stderr,
                 "memoptctl: --limit: expected bytes, such as 300MiB, or a percentage of the peak load, not {}\n",
                 printable(options.limit));
      return kExitWrongUse;
    }
  }
  if (options.objective == "time" && !problem.limit) {
    fmt::print(stderr, "memoptctl: --objective time: expected a --limit, as there is none in {}\n",
               printable(options.file));
    return kExitWrongUse;
  }
  if (!options.objective.empty() && options.objective != "time" && options.objective != "footprint") {
    fmt::print(stderr, "memoptctl: --objective: expected footprint or time, not {}\n", printable(options.objective));
    return kExitWrongUse;
  }
  layout::Limits limits;
  limits.seed = options.seed;
  if (options.layout_seconds > 0) {
    limits.time =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options.layout_seconds));
  }
  const auto begin = std::chrono::steady_clock::now();
  auto plan = plan_by(options, problem, lives, limits);
  if (!plan) {
    fmt::print(stderr,
               "memoptctl: --strategy: expected memopt, none or autoswap:doa, :aoa, :wdoa, :swdoa or :tuned, not {}\n",
               printable(options.strategy));
    return kExitWrongUse;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!plan->feasible) {
    if (plan->footprint == 0) {
      fmt::print(stderr, "memoptctl: {} finds no plan at no added time\n", options.strategy);
    } else {
      fmt::print(stderr,
                 "memoptctl: {} finds no plan within {}; the least feasible limit it reaches is {} ({} bytes)\n",
                 options.strategy, mib(*problem.limit), mib(plan->footprint), plan->footprint);
    }
    return kExitInfeasible;
  }
  const swap::Report report = swap::verify(problem, plan->decisions);
  if (report.fault) throw std::runtime_error("a plan of " + options.strategy + " does not hold: " + *report.fault);
  std::optional<swap::ModuleBounds> bounds;
  if (options.bound) bounds = bounds_of(problem);
  print(problem, report, bounds ? &*bounds : nullptr, *plan, seconds);
  if (!options.json.empty()) {
    file.decisions = std::move(plan->decisions);
    std::ofstream out(options.json, std::ios::binary);
    swap::write_plan(file, out);
    out.close();
    if (!out) throw std::runtime_error(options.json + ": cannot be written: " + std::strerror(errno));
  }
  return 0;
}

}  // namespace memopt::tools
