#include "planner/swap/places/timeline.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/places/intervals.h"
#include "planner/swap/simulation/recorded_clock.h"

namespace memopt::swap {
namespace {

// Nanoseconds: times are sums of doubles, formed in several orders.
constexpr double kSame = 1e-3;
constexpr std::uint64_t kMostRounds = 4;

// Each operation is preceded by its wait. What happens in between two moments of operations lies so far behind the
// first.
struct Moment {
  std::int64_t segment = 0;  // twice the position, and one more for the operation itself
  double behind = 0;

  friend auto operator<=>(const Moment&, const Moment&) = default;
};

class Moments {
 public:
  explicit Moments(const RecordedClock& clock) : clock_(clock) {}

  static Moment begin_of(std::int64_t position) { return {2 * position + 1, 0}; }
  static Moment behind(std::int64_t position) { return {2 * position + 2, 0}; }

  // The last operation that has ended by then.
  std::int64_t last_ended(double time) const {
    const auto& ends = clock_.ends();
    return std::upper_bound(ends.begin(), ends.end(), time + kSame) - ends.begin() - 1;
  }
  // The last one at this time: what begins then is behind all that ends then.
  Moment last_at(double time) const {
    const auto& ends = clock_.ends();
    const auto position = std::upper_bound(ends.begin(), ends.end(), time + kSame) - ends.begin();
    return within(position, time, false);
  }
  Moment first_at(double time) const {
    const auto& ends = clock_.ends();
    const auto position = std::lower_bound(ends.begin(), ends.end(), time - kSame) - ends.begin();
    return within(position, time, true);
  }

 private:
  Moment within(std::int64_t position, double time, bool first) const {
    if (!clock_.has(position)) return behind(position - 1);
    const double before = position == 0 ? 0 : clock_.end(position - 1);
    const double begin = clock_.begin(position), end = clock_.end(position);
    if (first) {
      if (time <= before + kSame) return {2 * position, 0};
      if (time < begin - kSame) return {2 * position, time - before};
      if (time <= begin + kSame) return begin_of(position);
      return time < end - kSame ? Moment{2 * position + 1, time - begin} : behind(position);
    }
    if (time >= begin - kSame)
      return time <= begin + kSame ? begin_of(position) : Moment{2 * position + 1, time - begin};
    return time <= before + kSame ? Moment{2 * position, 0} : Moment{2 * position, time - before};
  }

  const RecordedClock& clock_;
};

struct Stay {
  std::uint32_t block = 0;
  std::int32_t in_swap = kNoSwap;
  std::int64_t turn = 0;
  Moment begin, end;
};

// On a circle of so many segments, as ranks.
class Circle {
 public:
  Circle(std::int64_t segments, std::vector<Moment> all) : segments_(segments), all_(std::move(all)) {
    for (Moment& one : all_) one = on_circle(one);
    all_.push_back({0, 0});
    std::sort(all_.begin(), all_.end());
    for (std::uint64_t rank = 0, k = 0; k < all_.size(); ++k) {
      const bool same = k > 0 && all_[k].segment == all_[k - 1].segment && all_[k].behind <= all_[k - 1].behind + kSame;
      if (k > 0 && !same) ++rank;
      ranks_.push_back(rank);
    }
    length_ = ranks_.back() + 1;
  }

  std::uint64_t length() const { return length_; }
  // False: longer than the circle.
  bool put(const Stay& stay, std::vector<layout::Interval>& when) const {
    const std::uint64_t from = rank(stay.begin), to = rank(stay.end);
    const std::int64_t length = stay.end.segment - stay.begin.segment;
    if (length > segments_ || (length == segments_ && to > from)) return false;
    if (from < to) {
      when.push_back({from, to});
    } else if (to < from || length != 0) {  // across the end, or all of it
      when.push_back({from, length_});
      if (to > 0) when.push_back({0, to});
    }
    return true;
  }

 private:
  Moment on_circle(Moment moment) const {
    moment.segment = (moment.segment % segments_ + segments_) % segments_;
    return moment;
  }
  std::uint64_t rank(const Moment& moment) const {
    const auto at = std::lower_bound(all_.begin(), all_.end(), on_circle(moment)) - all_.begin();
    return ranks_[static_cast<std::size_t>(at)];
  }

  std::int64_t segments_;
  std::vector<Moment> all_;
  std::vector<std::uint64_t> ranks_;
  std::uint64_t length_ = 0;
};

std::int64_t signed_of(std::uint64_t number) { return static_cast<std::int64_t>(number); }

}  // namespace

std::optional<TimelineProblem> make_timeline_problem(const Problem& problem, const Liveness& liveness,
                                                     const Decisions& decisions, Simulator& simulator,
                                                     Returns returns) {
  const Timing timing = simulator.record(decisions);
  if (timing.fault != Fault::kNone || simulator.rounds() > kMostRounds) return std::nullopt;
  const std::int64_t n = signed_of(liveness.operations), rounds = signed_of(simulator.rounds());
  std::int64_t span = 1;
  for (const ResidencyInterval& it : simulator.residency().intervals) span = std::max(span, signed_of(it.last) / n + 1);
  const std::int64_t iterations = timing.iterations;
  const std::int64_t born = iterations - 1 - span - rounds;
  if (born < 1) return std::nullopt;
  const RecordedClock clock(problem, simulator, timing.iterations);
  const Moments moments(clock);
  TimelineProblem result;
  result.added_ns = timing.added_ns;
  for (const Swap& swap : decisions.swaps) result.in_after.push_back(swap.returns() ? swap.out_after : kNever);
  std::vector<Stay> stays;
  std::vector<Moment> all;
  for (const ResidencyInterval& it : simulator.residency().intervals) {
    for (std::int64_t round = 0; round < rounds; ++round) {
      const std::int64_t then = born + round;
      Stay stay{it.block, it.in_swap, then % rounds, Moments::begin_of(signed_of(it.first) + then * n),
                Moments::behind(signed_of(it.last) + then * n)};
      if (it.in_swap != kNoSwap) {
        const auto swap = static_cast<std::uint32_t>(it.in_swap);
        const std::int64_t issued = then + signed_of(decisions.swaps[swap].in_after) / n;
        const double begin = simulator.in_begin(swap, static_cast<std::uint64_t>(issued));
        stay.begin = moments.last_at(begin);
        const auto ended = static_cast<std::uint64_t>(std::max<std::int64_t>(0, moments.last_ended(begin) - then * n));
        result.in_after[swap] = std::clamp(ended, result.in_after[swap], decisions.swaps[swap].need - 1);
      }
      if (it.out_swap != kNoSwap) {
        const std::int64_t issued = (signed_of(it.last) + then * n) / n;
        stay.end = moments.first_at(
            simulator.out_end(static_cast<std::uint32_t>(it.out_swap), static_cast<std::uint64_t>(issued)));
      }
      if (stay.end < stay.begin) return std::nullopt;
      all.push_back(stay.begin);
      all.push_back(stay.end);
      stays.push_back(stay);
    }
  }
  const Circle circle(2 * n * rounds, std::move(all));
  std::vector<bool> swapped(problem.blocks.size());
  for (const Swap& swap : decisions.swaps) swapped[swap.block] = true;
  std::vector<bool> free_returns(decisions.swaps.size());
  if (returns == Returns::kElsewhere)
    free_returns = find_free_returns(problem, liveness, decisions, simulator, timing.iterations - 2);
  LayoutProblem& layout = result.layout;
  layout.returns.assign(decisions.swaps.size(), kNoBuffer);
  std::vector<layout::Interval> when;
  std::vector<std::int32_t> in_swaps;
  std::vector<std::uint32_t> group_of;
  std::size_t begin = 0, end = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b, begin = end) {
    const auto first_buffer = static_cast<std::uint32_t>(layout.problem.buffers.size());
    layout.first.push_back(first_buffer);
    layout.turns.push_back(0);
    const Block& block = problem.blocks[b];
    // Each stay as often as there are rounds.
    in_swaps.clear();
    for (; end < stays.size() && stays[end].block == b; ++end) {
      if ((end - begin) % static_cast<std::size_t>(rounds) == 0) in_swaps.push_back(stays[end].in_swap);
    }
    if (block.bytes == 0) continue;
    const std::uint32_t groups = group_stays(free_returns, in_swaps, group_of);
    const std::int64_t turns = block.persistent ? 1 : rounds;
    layout.turns[b] = static_cast<std::uint32_t>(turns);
    for (std::uint32_t group = 0; group < groups; ++group) {
      for (std::int64_t turn = 0; turn < turns; ++turn) {
        when.clear();
        if (begin == end) when.push_back({0, circle.length()});  // persistent, never swapped
        for (std::size_t k = begin; k < end; ++k) {
          if (group_of[(k - begin) / static_cast<std::size_t>(rounds)] != group) continue;
          if ((block.persistent || stays[k].turn == turn) && !circle.put(stays[k], when)) return std::nullopt;
        }
        if (when.empty() || !join(when)) return std::nullopt;
        layout.problem.add(block.bytes, when, alignment_of(problem, b, swapped[b]));
      }
    }
    for (std::size_t k = 0; k < in_swaps.size(); ++k) {
      if (group_of[k] != 0) {
        layout.returns[static_cast<std::size_t>(in_swaps[k])] =
            first_buffer + group_of[k] * static_cast<std::uint32_t>(turns);
      }
    }
  }
  return result;
}

namespace {

// Places for what the timeline leaves. `most_ns`: that may be added.
std::optional<Decisions> lay_out(const Problem& problem, Simulator& simulator, const Decisions& decisions,
                                 std::optional<TimelineProblem> timeline, const layout::Limits& limits,
                                 std::optional<std::uint64_t> capacity, double most_ns) {
  if (!timeline) return std::nullopt;
  layout::Problem& layout = timeline->layout.problem;
  layout.capacity = capacity;
  const layout::Outcome outcome = layout::solve(layout, limits);
  if (!outcome.found(layout.buffers.size())) return std::nullopt;
  Decisions placed{decisions.swaps, {}};
  set_places(problem, timeline->layout, outcome.solution, placed);
  std::optional<Decisions> best;
  double least = most_ns;
  const auto offer = [&](Decisions one) {
    const Timing timing = simulator.evaluate(one);
    if (timing.fault != Fault::kNone || timing.early_swap_ins > 0 || timing.added_ns > least) return;
    least = timing.added_ns;
    best = std::move(one);
  };
  offer(placed);
  if (Decisions early = placed; simulator.issue_at_once(early)) offer(std::move(early));
  for (std::size_t j = 0; j < placed.swaps.size(); ++j) placed.swaps[j].in_after = timeline->in_after[j];
  offer(std::move(placed));
  return best;
}

std::optional<Decisions> lay_out(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                 const layout::Limits& limits, std::optional<std::uint64_t> capacity, Returns returns) {
  Simulator simulator(problem, liveness);
  auto timeline = make_timeline_problem(problem, liveness, decisions, simulator, returns);
  const double most_ns = timeline ? timeline->added_ns + kSame : 0;
  return lay_out(problem, simulator, decisions, std::move(timeline), limits, capacity, most_ns);
}

}  // namespace

std::optional<Decisions> lay_out_in_time(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                         const layout::Limits& limits, std::optional<std::uint64_t> capacity) {
  if (!problem.machine.remap_ns) {
    return lay_out(problem, liveness, decisions, limits, capacity, Returns::kWhereTheyWere);
  }
  const auto begin = std::chrono::steady_clock::now();
  auto elsewhere = lay_out(problem, liveness, decisions, limits, capacity, Returns::kElsewhere);
  if (elsewhere) return elsewhere;
  layout::Limits rest = limits;
  if (rest.time != std::chrono::nanoseconds::max()) {
    const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin);
    rest.time = std::max(std::chrono::nanoseconds(0), rest.time - spent);
  }
  return lay_out(problem, liveness, decisions, rest, capacity, Returns::kWhereTheyWere);
}

std::optional<Decisions> lay_out_as_by_load(const Problem& problem, const Liveness& liveness,
                                            const Decisions& decisions, std::uint64_t load,
                                            const layout::Limits& limits, std::optional<std::uint64_t> capacity) {
  Problem by_load = problem;
  by_load.layout = false;
  by_load.limit = load;
  Simulator simulator(by_load, liveness);
  auto timeline = make_timeline_problem(by_load, liveness, decisions, simulator);
  Simulator placed(problem, liveness);
  return lay_out(problem, placed, decisions, std::move(timeline), limits, capacity,
                 std::numeric_limits<double>::infinity());
}

bool has_turns(const Decisions& decisions) {
  return std::any_of(decisions.places.begin(), decisions.places.end(),
                     [](const Place& place) { return place.offsets.size() > 1; });
}

}  // namespace memopt::swap
