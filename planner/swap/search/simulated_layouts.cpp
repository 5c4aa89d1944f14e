#include "planner/swap/search/simulated_layouts.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "planner/swap/places/timeline.h"
#include "planner/swap/simulation/simulator.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

using std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;

constexpr double kPartAtTheEnd = 0.1;     // of all the time
constexpr double kLeastOfBlock = 300e-6;  // seconds: in less nothing better is found
constexpr double kMostSlack = 1.15;
constexpr double kLessSlack = 0.7;  // of what is above the limit, after what was not within it

nanoseconds nanoseconds_of(double seconds) { return std::chrono::duration_cast<nanoseconds>(Seconds(seconds)); }

bool timed(const SearchLimits& limits) { return limits.time != nanoseconds::max(); }

}  // namespace

SimulatedLayouts::SimulatedLayouts(const Problem& problem, const Liveness& liveness, const SearchLimits& limits,
                                   const Layouts& layouts, Incumbent& incumbent)
    : problem_(problem), liveness_(liveness), limits_(limits), layouts_(layouts), incumbent_(incumbent) {}

double SimulatedLayouts::seconds_at_the_end(const Problem& problem, const SearchLimits& limits) {
  if (!problem.layout || !limits.in_step || !timed(limits)) return 0;
  const double seconds = kPartAtTheEnd * Seconds(limits.time).count();
  return seconds < kLeastOfBlock * static_cast<double>(problem.blocks.size()) ? 0 : seconds;
}

void SimulatedLayouts::unswapped() {
  if (limits_.in_step && has_turns(incumbent_.plan().decisions)) incumbent_.lay_out_in_time(layouts_.brief());
}

void SimulatedLayouts::between_rounds(double seconds) {
  if (!problem_.layout || !limits_.in_step || !incumbent_.plan().feasible) return;
  layout::Limits limits = layouts_.thorough();
  if (timed(limits_)) limits.time = nanoseconds_of(kPartAtTheEnd * seconds);
  incumbent_.lay_out_in_time(limits);
  const double height = std::max(1.0, static_cast<double>(incumbent_.plan().footprint));
  slack_ = std::clamp(static_cast<double>(*problem_.limit) / height, 1.0, kMostSlack);
}

void SimulatedLayouts::last(const Budget& all) {
  const double seconds = seconds_at_the_end(problem_, limits_);
  if (!limits_.in_step || (timed(limits_) && seconds == 0)) return;
  layout::Limits limits = layouts_.thorough();
  for (bool better = true; better && !incumbent_.is_done() && !all.is_cancelled(); ++limits.seed) {
    if (timed(limits_)) {
      const double left = Seconds(limits_.time).count() - all.elapsed();
      if (left < seconds / 2) break;
      limits.time = nanoseconds_of(std::min(left, seconds));
    }
    better = incumbent_.lay_out_in_time(limits);
  }
}

std::uint64_t SimulatedLayouts::allowed() const {
  return static_cast<std::uint64_t>(slack_ * static_cast<double>(*problem_.limit));
}

void SimulatedLayouts::offer(Decisions decisions, const layout::Limits& limits) {
  if (!incumbent_.plan().feasible || footprint_of(problem_, decisions) <= *problem_.limit) {
    incumbent_.offer(std::move(decisions), 0);
    return;
  }
  const Timing timing = Simulator(problem_, liveness_).evaluate(decisions);
  if (slack_ == 1 || timing.fault != Fault::kNone || timing.added_ns >= incumbent_.added_within()) return;
  auto within = lay_out_in_time(problem_, liveness_, decisions, limits, problem_.limit);
  if (!within) {
    slack_ = 1 + kLessSlack * (slack_ - 1);
    return;
  }
  incumbent_.offer(std::move(*within), 0);
}

}  // namespace memopt::swap
