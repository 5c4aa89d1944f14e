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
constexpr double kThoroughPart = 0.03;
constexpr double kLastPart = 0.1;
constexpr nanoseconds kLongestLast = std::chrono::seconds(1);
constexpr std::uint64_t kBriefWork = 20000, kThoroughWork = 400'000;

bool timed(const SearchLimits& limits) { return limits.time != nanoseconds::max(); }

nanoseconds part_of(const SearchLimits& limits, double part) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(limits.time) * part);
}

// Of shorter ones.
layout::Limits thorough_layout(layout::Limits layout, const SearchLimits& limits) {
  if (timed(limits)) {
    layout.time = std::max(layout.time, part_of(limits, kThoroughPart));
  } else {
    layout.work = kThoroughWork;
  }
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
      thorough_(thorough_layout(brief_, limits)),
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
  auto within = finish(problem_, liveness_, candidates_, choice, Items::kAnywhere, brief_, problem_.limit);
  if (within && incumbent_.offer(std::move(*within), 0)) return true;
  auto swaps = swaps_alone(problem_, liveness_, candidates_, choice);
  return swaps && incumbent_.offer_laid_out(std::move(*swaps), limits, problem_.limit);
}

}  // namespace memopt::swap
