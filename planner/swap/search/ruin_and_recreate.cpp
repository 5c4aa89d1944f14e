#include "planner/swap/search/ruin_and_recreate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/places/layout_problem.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

// Of a limit: how much less of the load copies in chunks, and places, need; more is tried, so many times.
constexpr double kLess = 0.985;
constexpr int kTriesToBegin = 8;
constexpr double kAlmost = 0.995;  // of the least load that can be covered
// Of what is given up: the part of the iteration, or of all evictions, small ones being more frequent.
constexpr double kInOnePart = 0.5, kGivenUpThere = 0.7;
constexpr double kLeastPart = 0.02, kMostMore = 0.3;
// While the limit is passed: in so many tries all are given up, as what lies badly may need very different evictions;
// so many of the layouts have this time for each block, as others in the same time are worth more than a better one.
constexpr double kFromNothing = 0.5, kQuickly = 0.75;
constexpr std::chrono::microseconds kQuickTime{40};
// Costs are changed by a factor of this spread; by hardly any in some tries.
constexpr double kSpread = 1, kHardly = 0.05, kHardlyChanged = 0.2;
// Parts of the limit. Loads that are wanted lie between the goal, or what leaves room for other places than the last,
// and at first so much of the way to the limit: to less after what could not be laid out, and to more after what could
// (so that a third can be) and after what could not be covered. While the limit is passed there is more room.
constexpr double kRoomForOtherPlaces = 0.95, kRoomAbove = 0.85, kTowardsLimit = 0.7;
constexpr double kLower = 0.001, kHigher = 0.002;
// The first temperature, of the time that is added.
constexpr double kHot = 0.02;
// While the limit is passed: so many layouts, those in a row that come no nearer, and this part of the time. Of a
// number of tries a layout is so many; many more tries need no layout. Of all the time, that may have this part.
constexpr std::uint64_t kLayouts = 2, kInVain = 8, kLeastInVain = 4, kUntilWithin = 16;
constexpr double kLongerUntilWithin = 1.25, kPartUntilWithin = 0.6;
// Steps of a layout that begins with the last one.
constexpr std::uint64_t kLayoutWork = 1000;

bool is_longer(const layout::Limits& one, const layout::Limits& other) {
  return one.work > other.work || one.time > other.time;
}

}  // namespace

RuinAndRecreate::RuinAndRecreate(const Problem& problem, const Liveness& liveness, const layout::Limits& layout,
                                 const layout::Limits& thorough, std::uint64_t seed, Incumbent& incumbent)
    : problem_(problem),
      liveness_(liveness),
      layout_(layout),
      thorough_(thorough),
      incumbent_(incumbent),
      limit_(problem.limit.value_or(kNever)),
      covering_(problem, liveness),
      simulator_(problem, liveness),
      random_(seed) {}

// The least load that was found to be covered, where `goal` is not: by halving what is between, each time from nothing.
double RuinAndRecreate::least_covered(double goal, const Ends& ends) {
  auto least = static_cast<double>(covering_.load());
  for (int i = 0; i < kTriesToBegin && goal < kAlmost * least && !(ends && ends()); ++i) {
    use_none();
    const double half = (goal + least) / 2;
    if (covering_.cover(static_cast<std::uint64_t>(half), {}, ends)) {
      least = half;
    } else {
      goal = half;
      least = std::min(least, static_cast<double>(covering_.load()));
    }
  }
  return least;
}

bool RuinAndRecreate::begin(const Ends& ends) {
  const auto limit = static_cast<double>(limit_);
  double goal = limit;
  for (int i = 0; i < kTriesToBegin; ++i) {
    if (!covering_.cover(static_cast<std::uint64_t>(goal), {}, ends)) {
      if (ends && ends()) break;
      // Half of the way back to what can be covered, if there is anything yet.
      least_ = kept_.empty() ? least_covered(goal, ends) : goal;
      goal = kept_.empty() ? least_ : (goal + goal_) / 2;
      kept_.empty() ? use_none() : return_to_kept();
      continue;
    }
    std::optional<Result> result = evaluate(layout_, false);
    if (!result) return false;
    if (result->above != 0 && result->bound <= limit_ && is_longer(thorough_, layout_)) {
      std::optional<Result> thorough = evaluate(thorough_, true);
      if (thorough && thorough->above < result->above) result = std::move(thorough);
    }
    // Where not even the bound is within the limit, no layout was tried for long.
    const std::uint64_t footprint = result->bound > limit_ ? result->bound : limit_ + result->above;
    if (kept_.empty() || result->above <= current_.above) {
      kept_ = covering_.used();
      current_ = std::move(*result);
      goal_ = goal;
    }
    if (current_.above == 0) break;
    const double next = std::max(goal * kLess * limit / static_cast<double>(footprint), (goal + least_) / 2);
    if (next >= goal) break;
    goal = next;
  }
  if (kept_.empty()) return false;
  return_to_kept();
  const double least = std::min(goal_, kRoomForOtherPlaces * limit);
  highest_ = least + kTowardsLimit * (limit - least);
  return true;
}

void RuinAndRecreate::run(const Budget& budget, double part, std::uint64_t tries) {
  const double time = budget.seconds() * part;
  const bool above = current_.above != 0;
  // Nothing else may find a plan within the limit, so that this is worth more time than a better one is.
  const std::uint64_t before = layouts_;
  std::uint64_t last = before;  // that came nearer
  const std::uint64_t in_vain = std::max(kLeastInVain, tries / kInVain);
  for (std::uint64_t i = 0; current_.above != 0 && i < kUntilWithin * tries; ++i) {
    if (budget.elapsed() >= std::max(kLongerUntilWithin * time, kPartUntilWithin * budget.seconds())) return;
    if (layouts_ - before >= std::max(in_vain, tries / kLayouts) || layouts_ - last >= in_vain) return;
    const std::uint64_t beyond = current_.above;
    attempt(0);
    if (current_.above < beyond) last = layouts_;
  }
  if (current_.above != 0) return;
  const double begin = above ? budget.elapsed() : 0;
  for (std::uint64_t i = 0; i < tries && !incumbent_.is_done(); ++i) {
    const double over =
        std::max((budget.elapsed() - begin) / time, static_cast<double>(i) / static_cast<double>(tries));
    if (over >= 1 || budget.is_cancelled()) break;
    attempt(kHot * current_.added_ns * (1 - over) * (1 - over));
  }
}

void RuinAndRecreate::attempt(double temperature) {
  ruin();
  std::optional<Result> result = recreate();
  const double most = current_.added_ns - temperature * std::log(1 - fraction());
  const bool taken =
      result && (result->above < current_.above || (result->above == current_.above && result->added_ns <= most));
  if (taken) {
    kept_ = covering_.used();
    current_ = std::move(*result);
  } else {
    return_to_kept();
  }
}

void RuinAndRecreate::ruin() {
  if (current_.above != 0 && fraction() < kFromNothing) {
    use_none();
    return;
  }
  const std::uint64_t n = liveness_.operations;
  const bool in_one_part = fraction() < kInOnePart;
  const double share = kLeastPart + kMostMore * fraction() * fraction();
  const std::uint64_t from = random_() % n;
  const auto length = static_cast<std::uint64_t>(share * static_cast<double>(n)) + 1;
  const auto is_there = [&](std::uint64_t position) { return (position % n + n - from) % n < length; };
  for (std::uint32_t a = 0; a < kept_.size(); ++a) {
    if (kept_[a] == 0) continue;
    const auto [leaves, needed] = covering_.away(a);
    const bool chosen = !in_one_part || is_there(leaves) || is_there(needed);
    if (chosen && fraction() < (in_one_part ? kGivenUpThere : share)) covering_.use(a, false);
  }
}

std::optional<RuinAndRecreate::Result> RuinAndRecreate::recreate() {
  const double spread = fraction() < kHardlyChanged ? kHardly : kSpread * fraction();
  std::normal_distribution<double> normal;
  std::vector<double> factors(kept_.size());
  for (double& factor : factors) factor = std::exp(spread * normal(random_));
  const auto limit = static_cast<double>(limit_);
  const bool above = current_.above != 0;
  const double low = std::max(least_, std::min(goal_, (above ? kRoomAbove : kRoomForOtherPlaces) * limit));
  const double part = fraction();
  const double goal = low + std::max(0.0, highest_ - low) * (above ? part * part * part : part);
  if (!covering_.cover(static_cast<std::uint64_t>(goal), factors)) {
    // By other costs it may be done.
    highest_ = std::min(highest_ + kHigher * limit, limit);
    return std::nullopt;
  }
  if (above) {
    layout::Limits limits = thorough_;
    if (fraction() < kQuickly) {
      // Without a time limit results repeat, so that it is counted then.
      const bool timed = limits.time != std::chrono::nanoseconds::max();
      if (timed) limits.time = std::min<std::chrono::nanoseconds>(limits.time, problem_.blocks.size() * kQuickTime);
      limits.work = std::min(limits.work, layout_.work);
    }
    return evaluate(limits, least_ <= limit);
  }
  layout::Limits limits = layout_;
  limits.work = std::min(limits.work, kLayoutWork);
  std::optional<Result> result = evaluate(limits, true);
  highest_ = std::clamp(highest_ + (result ? kHigher : -kLower) * limit, std::min(low, limit), limit);
  return result;
}

// From nothing, until it is within the limit.
layout::Outcome RuinAndRecreate::lay_out(const layout::Problem& problem, layout::Limits limits) {
  ++layouts_;
  std::atomic<bool> ends = false;
  limits.cancelled = &ends;
  return layout::solve_by_heuristics(problem, limits, [&](const layout::Outcome& better) {
    const bool cancelled = layout_.cancelled != nullptr && layout_.cancelled->load(std::memory_order_relaxed);
    if (better.solution.height <= limit_ || cancelled) ends.store(true, std::memory_order_relaxed);
  });
}

// What is covered now is laid out, from the last layout on if there is one, and simulated. Nothing where it can't be;
// `within`: nor where no layout can be within the limit.
std::optional<RuinAndRecreate::Result> RuinAndRecreate::evaluate(const layout::Limits& limits, bool within) {
  Decisions decisions = covering_.decisions();
  Result result;
  if (problem_.layout) {
    LayoutProblem layout = make_layout_problem(problem_, liveness_, decisions);
    layout::Outcome outcome;
    if (current_.above != 0) {
      if (within && layout::bound_of(layout.problem) > limit_) return std::nullopt;
      // From the last one on, none would be lower.
      outcome = lay_out(layout.problem, limits);
    } else {
      layout.problem.capacity = limit_;
      std::vector<std::uint64_t> before(layout.problem.buffers.size(), layout::kAnywhere);
      for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
        const std::vector<std::uint64_t>& offsets = current_.places[b].offsets;
        if (layout.turns[b] != offsets.size()) continue;
        for (std::size_t k = 0; k < offsets.size(); ++k) {
          const std::size_t buffer = layout.first[b] + k;
          if (offsets[k] % layout.problem.buffers[buffer].alignment == 0) before[buffer] = offsets[k];
        }
      }
      outcome = layout::solve_again(layout.problem, before, limits);
    }
    if (!outcome.found(layout.problem.buffers.size())) return std::nullopt;
    set_places(problem_, layout, outcome.solution, decisions);
    result.places = decisions.places;
    const std::uint64_t footprint = footprint_of(problem_, decisions);
    result.bound = outcome.lower_bound;
    result.above = footprint - std::min(footprint, limit_);
    if (result.above != 0) {
      incumbent_.offer(std::move(decisions), 0);
      return result;
    }
  }
  const auto added = [&](const Decisions& one) {
    const Timing timing = simulator_.evaluate(one);
    return timing.fault == Fault::kNone && timing.early_swap_ins == 0 ? std::optional(timing.added_ns) : std::nullopt;
  };
  // As soon as the bytes are there, where that is earlier.
  std::optional<double> its = added(decisions);
  if (Decisions early = decisions; problem_.layout && simulator_.issue_at_once(early)) {
    const std::optional<double> sooner = added(early);
    if (sooner && (!its || *sooner <= *its)) {
      decisions = std::move(early);
      its = sooner;
    }
  }
  if (!its) return std::nullopt;
  result.above = 0;
  result.added_ns = *its;
  if (result.added_ns < incumbent_.added_within()) incumbent_.offer(std::move(decisions), limit_);
  return result;
}

void RuinAndRecreate::use_none() {
  for (std::uint32_t a = 0; a < covering_.used().size(); ++a) {
    if (covering_.used()[a] != 0) covering_.use(a, false);
  }
}

void RuinAndRecreate::return_to_kept() {
  for (std::uint32_t a = 0; a < kept_.size(); ++a) {
    if (covering_.used()[a] != kept_[a]) covering_.use(a, kept_[a] != 0);
  }
}

}  // namespace memopt::swap
