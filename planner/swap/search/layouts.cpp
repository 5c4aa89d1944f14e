#include "planner/swap/search/layouts.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kBrief = std::chrono::milliseconds(100);
constexpr double kBriefPart = 0.02;  // of all the time, at most
// For each block: for one skyline at least; for some, where that is no more than a part of all.
constexpr nanoseconds kSkyline = std::chrono::microseconds(5), kSkylines = std::chrono::microseconds(20);
constexpr double kSkylinesPart = 0.15;
constexpr double kLongerPart = 0.03;
constexpr double kThoroughPart = 0.06, kMostThoroughPart = 0.12;
constexpr nanoseconds kThoroughly = std::chrono::microseconds(150);  // for each block, where that is not more
constexpr double kLastPart = 0.1;
constexpr int kMuchLonger = 3;       // a layout, than one that is tried before it
constexpr double kAsExpected = 1.1;  // of the delays of a choice
constexpr nanoseconds kLongestLast = std::chrono::seconds(1);
constexpr std::uint64_t kBriefWork = 20000, kThoroughWork = 400'000;

bool timed(const SearchLimits& limits) { return limits.time != nanoseconds::max(); }

nanoseconds part_of(const SearchLimits& limits, double part) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(limits.time) * part);
}

// Of shorter ones.
layout::Limits longer_layout(layout::Limits layout, const SearchLimits& limits) {
  if (timed(limits)) {
    layout.time = std::max(layout.time, part_of(limits, kLongerPart));
  } else {
    layout.work = kThoroughWork;
  }
  return layout;
}

layout::Limits thorough_layout(const Problem& problem, layout::Limits layout, const SearchLimits& limits) {
  layout.threads = limits.threads;
  if (!timed(limits)) return layout;
  const nanoseconds enough = static_cast<std::int64_t>(problem.blocks.size()) * kThoroughly;
  layout.time =
      std::max({layout.time, part_of(limits, kThoroughPart), std::min(enough, part_of(limits, kMostThoroughPart))});
  return layout;
}

layout::Limits last_layout(layout::Limits layout, const SearchLimits& limits) {
  if (timed(limits)) layout.time = std::max(layout.time, std::min(kLongestLast, part_of(limits, kLastPart)));
  return layout;
}

}  // namespace

layout::Limits brief_layout(const Problem& problem, const SearchLimits& limits) {
  layout::Limits layout;
  layout.seed = limits.seed;
  layout.cancelled = limits.cancelled;
  if (timed(limits)) {
    const auto blocks = static_cast<std::int64_t>(problem.blocks.size());
    layout.time = std::min(kBrief, part_of(limits, kBriefPart)) +
                  std::max(blocks * kSkyline, std::min(blocks * kSkylines, part_of(limits, kSkylinesPart)));
  } else {
    layout.work = kBriefWork;
  }
  return layout;
}

Layouts::Layouts(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                 const SearchLimits& limits, Incumbent& incumbent)
    : problem_(problem),
      liveness_(liveness),
      candidates_(candidates),
      brief_(brief_layout(problem, limits)),
      longer_(longer_layout(brief_, limits)),
      thorough_(thorough_layout(problem, longer_, limits)),
      last_(last_layout(thorough_, limits)),
      incumbent_(incumbent) {}

std::optional<std::uint64_t> Layouts::lay_out(const Choice& choice, Items items, const layout::Limits& limits,
                                              std::optional<std::uint64_t> capacity) {
  order_ = choice.order;
  auto decisions = finish(problem_, liveness_, candidates_, choice, items, limits, capacity);
  if (!decisions) return std::nullopt;
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return decisions->places[candidates_.items[a].block].offsets[0] <
           decisions->places[candidates_.items[b].block].offsets[0];
  });
  const std::uint64_t footprint = footprint_of(problem_, *decisions);
  incumbent_.offer(std::move(*decisions), 0);
  return footprint;
}

bool Layouts::offer_within(const Choice& choice, const layout::Limits& limits) {
  const auto offer_timed = [&](const layout::Limits& longer) {
    auto within = finish(problem_, liveness_, candidates_, choice, Items::kAnywhere, longer, problem_.limit);
    return within && incumbent_.offer(std::move(*within), 0);
  };
  const bool counted = limits.time == nanoseconds::max();
  const bool is_long = counted ? limits.work / kMuchLonger > brief_.work : limits.time / kMuchLonger > brief_.time;
  if (is_long && offer_timed(brief_)) return true;
  if (offer_timed(limits)) return true;
  // What waits for its bytes may be delayed by far more than that.
  auto swaps = swaps_alone(problem_, liveness_, candidates_, choice);
  if (!swaps || !incumbent_.offer_laid_out(std::move(*swaps), limits, problem_.limit)) return false;
  double expected = kUnnoticed * problem_.period;
  for (const Delay& delay : choice.delays) expected += delay.ns;
  return incumbent_.added_within() <= kAsExpected * expected;
}

}  // namespace memopt::swap
