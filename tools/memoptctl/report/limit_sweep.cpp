#include "tools/memoptctl/report/limit_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "planner/swap/model/load.h"
#include "planner/swap/search/search.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

constexpr std::size_t kMostLimits = 9;
constexpr double kLeastSeconds = 0.05;
// What searches take all together, as a part of what they were given, before limits are left out.
constexpr double kPatience = 1.5;

class Sweeper {
 public:
  Sweeper(const swap::Problem& problem, const swap::Liveness& liveness, const SweepOptions& options)
      : problem_(problem), liveness_(liveness), options_(options) {
    search_.threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    search_.seed = options.seed;
    search_.in_step = true;
    search_.in_time = true;
    search_.cancelled = &end_at_interrupt();
  }

  double spent() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

  // With its part of the time that is left for so many searches.
  PlanPoint plan(std::optional<std::uint64_t> limit, std::size_t searches) {
    const double part = (options_.seconds - spent()) / static_cast<double>(searches);
    search_.time = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::max(part, kLeastSeconds)));
    problem_.limit = limit;
    const swap::Objective objective = limit ? swap::Objective::kTime : swap::Objective::kFootprint;
    const swap::SearchPlan found = swap::search(problem_, liveness_, objective, search_);
    PlanPoint point;
    point.limit = limit.value_or(0);
    point.feasible = found.feasible;
    point.footprint = found.footprint;
    if (found.feasible) point.decisions = found.decisions;
    verify(point);
    return point;
  }

  // The plan of another limit within this one.
  PlanPoint again(const PlanPoint& other, std::uint64_t limit) {
    PlanPoint point = other;
    point.limit = limit;
    verify(point);
    return point;
  }

 private:
  void verify(PlanPoint& point) {
    if (!point.feasible) return;
    problem_.limit = point.limit != 0 ? std::optional(point.limit) : std::nullopt;
    point.report = swap::verify(problem_, liveness_, point.decisions);
    if (point.report.fault) {
      throw std::runtime_error("a plan within " + bytes_text(static_cast<double>(point.limit)) +
                               " does not hold: " + *point.report.fault);
    }
  }

  swap::Problem problem_;
  const swap::Liveness& liveness_;
  const SweepOptions& options_;
  swap::SearchLimits search_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// As many of those behind `done` as there is time for if each takes as long, evenly spread; the wanted one in any case.
std::size_t thin_out(std::vector<std::uint64_t>& limits, std::size_t done, std::size_t room,
                     std::optional<std::uint64_t> wanted) {
  const std::size_t rest = limits.size() - done;
  if (room >= rest) return 0;
  std::vector<std::uint64_t> kept(limits.begin(), limits.begin() + static_cast<std::ptrdiff_t>(done));
  for (std::size_t i = 0; i < rest; ++i) {
    const bool due = (i + 1) * room / rest != i * room / rest;
    if (due || wanted == limits[done + i]) kept.push_back(limits[done + i]);
  }
  const std::size_t out = limits.size() - kept.size();
  limits = std::move(kept);
  return out;
}

double added(const PlanPoint& point) { return point.report.timing.added_ns; }

}  // namespace

std::vector<std::uint64_t> swept_limits(std::uint64_t peak, std::uint64_t least) {
  for (const std::uint64_t step : {1, 2, 5, 10, 20}) {
    std::vector<std::uint64_t> limits;
    for (std::uint64_t part = 100; part != 0; part -= std::min(part, step)) {
      const auto limit = static_cast<std::uint64_t>(static_cast<double>(peak) * static_cast<double>(part) / 100);
      if (limit < least || limit == 0) break;
      limits.push_back(limit);
    }
    if (limits.size() <= kMostLimits) return limits;
  }
  return {};
}

Sweep sweep_limits(const swap::Problem& problem, const swap::Liveness& liveness, const SweepOptions& options) {
  Sweep sweep;
  sweep.least = swap::least_load(problem, liveness);
  std::vector<std::uint64_t> limits = swept_limits(liveness.peak, sweep.least);
  if (options.limit && std::find(limits.begin(), limits.end(), *options.limit) == limits.end()) {
    limits.push_back(*options.limit);
  }
  std::sort(limits.begin(), limits.end());
  Sweeper sweeper(problem, liveness, options);
  const auto say = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  say("the least footprint at no added time");
  PlanPoint free = sweeper.plan(std::nullopt, limits.size() + 1);
  // Within what that needs there is nothing to search for.
  const auto settled = [&](std::uint64_t limit) { return free.feasible && free.footprint <= limit; };
  std::erase_if(limits, [&](std::uint64_t limit) { return settled(limit) && options.limit != limit; });
  // The narrowest first: what is found there holds within all others.
  std::optional<PlanPoint> narrower;
  for (std::size_t i = 0; i < limits.size() && !interrupted(); ++i) {
    say(fmt::format("limit {} of {}: within {}", i + 1, limits.size(), bytes_text(static_cast<double>(limits[i]))));
    PlanPoint point = settled(limits[i]) ? sweeper.again(free, limits[i]) : sweeper.plan(limits[i], limits.size() - i);
    if (!point.feasible && interrupted()) break;  // what a search has not come to is not infeasible
    if (narrower && (!point.feasible || added(*narrower) < added(point))) point = sweeper.again(*narrower, limits[i]);
    if (point.feasible) narrower = point;
    point.wanted = options.limit == limits[i];
    sweep.points.push_back(std::move(point));
    // Searches of very many blocks take longer than they are told to.
    const double each = std::max(sweeper.spent() / static_cast<double>(i + 2), kLeastSeconds);
    const double room = std::max(0.0, kPatience * options.seconds - sweeper.spent()) / each;
    sweep.left_out += thin_out(limits, i + 1, static_cast<std::size_t>(room), options.limit);
  }
  // A limit may have led to less.
  for (const PlanPoint& other : sweep.points) {
    const bool unnoticed = other.feasible && added(other) <= swap::kUnnoticed * problem.period;
    if (unnoticed && (!free.feasible || other.footprint < free.footprint)) free = sweeper.again(other, 0);
  }
  free.wanted = false;
  if (free.feasible) sweep.points.push_back(std::move(free));
  sweep.interrupted = interrupted();
  std::stable_sort(sweep.points.begin(), sweep.points.end(), [](const PlanPoint& a, const PlanPoint& b) {
    const auto at = [](const PlanPoint& one) { return one.limit != 0 ? one.limit : one.footprint; };
    return at(a) > at(b);
  });
  return sweep;
}

}  // namespace memopt::tools
