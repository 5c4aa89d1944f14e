#include "planner/swap/simulation/occupancy.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "planner/swap/simulation/recorded_clock.h"

namespace memopt::swap {
namespace {

// Nanoseconds: times are sums of doubles, formed in several orders.
constexpr double kTolerance = 1e-3;

// A residency interval of one instance, born in iteration `born`.
struct InstanceInterval {
  ResidencyInterval interval;
  std::int64_t born = 0;
  std::int64_t first = 0, last = 0;
  std::uint64_t from = 0, to = 0;
};

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::int64_t span_of(const Liveness& liveness, const Decisions& decisions) {
  std::uint64_t span = 1;
  for (const Lifetime& lifetime : liveness.of) {
    if (lifetime.freed != kNever) span = std::max(span, lifetime.freed / liveness.operations);
  }
  for (const Swap& swap : decisions.swaps) {
    if (swap.returns()) span = std::max(span, swap.need / liveness.operations + 1);
  }
  return static_cast<std::int64_t>(span);
}

std::vector<InstanceInterval> intervals_of_instances(const Problem& problem, const Liveness& liveness,
                                                     const Decisions& decisions, std::int64_t begin, std::int64_t end) {
  Residency residency;
  find_residency(problem, liveness, decisions, residency);
  const auto n = static_cast<std::int64_t>(liveness.operations);
  std::vector<InstanceInterval> result;
  for (const ResidencyInterval& it : residency.intervals) {
    const auto& offsets = offsets_since(decisions, it.block, it.in_swap);
    const auto turns = static_cast<std::int64_t>(offsets.size());
    for (std::int64_t k = begin; k < end; ++k) {
      const std::uint64_t from = offsets[static_cast<std::size_t>((k % turns + turns) % turns)];
      result.push_back({it, k, static_cast<std::int64_t>(it.first) + k * n, static_cast<std::int64_t>(it.last) + k * n,
                        from, from + problem.blocks[it.block].bytes});
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const InstanceInterval& a, const InstanceInterval& b) { return a.first < b.first; });
  return result;
}

// Byte ranges in use, and what owns them: a residency interval, or (negative) a persistent block that is never swapped.
class Ranges {
 public:
  // Nothing, or what is in the way.
  std::optional<std::int64_t> add(std::uint64_t from, std::uint64_t to, std::int64_t owner) {
    const auto after = used_.lower_bound({from, 0, std::numeric_limits<std::int64_t>::min()});
    if (after != used_.end() && std::get<0>(*after) < to) return std::get<2>(*after);
    if (after != used_.begin()) {
      const auto before = std::prev(after);
      if (std::get<1>(*before) > from) return std::get<2>(*before);
    }
    used_.emplace_hint(after, from, to, owner);
    return std::nullopt;
  }
  void remove(std::uint64_t from, std::uint64_t to, std::int64_t owner) { used_.erase({from, to, owner}); }

 private:
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>> used_;
};

std::string name(const Problem& problem, std::uint32_t block) {
  return "block " + std::to_string(problem.blocks[block].id);
}

std::string share(const Problem& problem, std::uint32_t a, std::uint32_t b, const std::string& when) {
  return name(problem, a) + " and " + name(problem, b) + " are resident on the same bytes " + when;
}

// Bytes of the persistent blocks that are never swapped; they go into `ranges` for good.
std::optional<std::string> add_permanent(const Problem& problem, const Decisions& decisions, Ranges& ranges,
                                         std::uint64_t& bytes) {
  std::vector<bool> swapped(problem.blocks.size());
  for (const Swap& swap : decisions.swaps) swapped[swap.block] = true;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    const Block& block = problem.blocks[b];
    if (!block.persistent || swapped[b] || block.bytes == 0) continue;
    const std::uint64_t from = decisions.places[b].offsets[0];
    if (const auto other = ranges.add(from, from + block.bytes, -1 - static_cast<std::int64_t>(b))) {
      return share(problem, b, static_cast<std::uint32_t>(-1 - *other), "all the time");
    }
    bytes += block.bytes;
  }
  return std::nullopt;
}

struct Event {
  double time = 0;
  bool start = false;
  std::size_t instance = 0;

  friend auto operator<=>(const Event&, const Event&) = default;
};

// A sweep over events that counts bytes and asks for each range whether it is free.
class Watch {
 public:
  Watch(const Problem& problem, const Decisions& decisions, const std::vector<InstanceInterval>& all)
      : problem_(problem), all_(all) {
    fault_ = add_permanent(problem, decisions, ranges_, now_);
    least_ = now_;
  }

  Occupancy run(std::vector<Event>& events, const std::vector<bool>& empty, const Simulator& simulator,
                std::uint64_t iterations) {
    if (fault_) return {fault_, 0};
    std::sort(events.begin(), events.end());
    std::vector<std::uint64_t> peaks(iterations, 0);
    std::uint64_t k = 0;
    for (const Event& event : events) {
      const InstanceInterval& instance = all_[event.instance];
      const auto owner = static_cast<std::int64_t>(event.instance);
      if (!event.start) {
        if (empty[event.instance]) continue;  // it ended where it began
        ranges_.remove(instance.from, instance.to, owner);
        now_ -= instance.to - instance.from;
        continue;
      }
      if (const auto other = ranges_.add(instance.from, instance.to, owner)) {
        const std::uint32_t block = *other < 0 ? static_cast<std::uint32_t>(-1 - *other)
                                               : all_[static_cast<std::size_t>(*other)].interval.block;
        return {share(problem_, instance.interval.block, block, "at " + std::to_string(event.time) + " ns"), 0};
      }
      now_ += instance.to - instance.from;
      while (k + 1 < iterations && event.time + kTolerance >= simulator.iteration_end(k)) ++k;
      peaks[k] = std::max(peaks[k], now_);
      if (empty[event.instance]) {
        ranges_.remove(instance.from, instance.to, owner);
        now_ -= instance.to - instance.from;
      }
    }
    return {std::nullopt, std::max(least_, *std::max_element(peaks.begin() + 1, peaks.end() - 1))};
  }

 private:
  const Problem& problem_;
  const std::vector<InstanceInterval>& all_;
  Ranges ranges_;
  std::uint64_t now_ = 0, least_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace

std::optional<std::string> find_overlap(const Problem& problem, const Liveness& liveness, const Decisions& decisions) {
  std::uint64_t rounds = 1;
  for (const Place& place : decisions.places) rounds = std::lcm(rounds, place.offsets.size());
  const std::int64_t span = span_of(liveness, decisions);
  const std::vector<InstanceInterval> all =
      intervals_of_instances(problem, liveness, decisions, -span, static_cast<std::int64_t>(rounds) + span + 1);
  Ranges ranges;
  std::uint64_t bytes = 0;
  if (auto fault = add_permanent(problem, decisions, ranges, bytes)) return fault;
  std::vector<std::tuple<std::int64_t, bool, std::size_t>>
      events;  // the end of an interval lies behind its last operation
  for (std::size_t j = 0; j < all.size(); ++j) {
    events.emplace_back(2 * all[j].first, true, j);
    events.emplace_back(2 * all[j].last + 1, false, j);
  }
  std::sort(events.begin(), events.end());
  for (const auto& [at, start, j] : events) {
    if (!start) {
      ranges.remove(all[j].from, all[j].to, static_cast<std::int64_t>(j));
    } else if (const auto other = ranges.add(all[j].from, all[j].to, static_cast<std::int64_t>(j))) {
      const std::uint32_t block =
          *other < 0 ? static_cast<std::uint32_t>(-1 - *other) : all[static_cast<std::size_t>(*other)].interval.block;
      const auto n = static_cast<std::int64_t>(liveness.operations);
      return share(problem, all[j].interval.block, block,
                   "at operation " + std::to_string(at / 2 - floor_divide(at / 2, n) * n));
    }
  }
  return std::nullopt;
}

Occupancy find_occupancy(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                         const Simulator& simulator, const Timing& timing) {
  const auto n = static_cast<std::int64_t>(liveness.operations);
  const auto iterations = static_cast<std::int64_t>(timing.iterations);
  const std::int64_t end = n * iterations;
  const std::vector<InstanceInterval> all =
      intervals_of_instances(problem, liveness, decisions, -span_of(liveness, decisions) - 1, iterations);
  const RecordedClock clock(problem, simulator, timing.iterations);
  const auto issued_in = [&](std::uint64_t position, std::int64_t born) {
    return static_cast<std::int64_t>(position) / n + born;
  };
  std::vector<Event> events;
  std::vector<bool> empty(all.size());
  for (std::size_t j = 0; j < all.size(); ++j) {
    const InstanceInterval& instance = all[j];
    const ResidencyInterval& it = instance.interval;
    // Before the first iteration: done at its start.
    double from = -1, to = std::numeric_limits<double>::infinity();
    if (it.in_swap == kNoSwap) {
      if (instance.first >= end) continue;
      if (clock.has(instance.first)) from = clock.begin(instance.first);
    } else {
      const Swap& swap = decisions.swaps[static_cast<std::size_t>(it.in_swap)];
      const std::int64_t k = issued_in(swap.in_after, instance.born);
      const bool known = k >= 0 && k < iterations;
      if (!known && instance.first >= end) continue;
      if (known) {
        const auto copy = static_cast<std::uint32_t>(it.in_swap);
        from = simulator.in_begin(copy, static_cast<std::uint64_t>(k));
        if (instance.first >= 0 && instance.first < end &&
            simulator.in_end(copy, static_cast<std::uint64_t>(k)) > clock.begin(instance.first) + kTolerance) {
          return {name(problem, it.block) + " is accessed before its swap-in has ended", 0};
        }
      }
    }
    if (it.out_swap == kNoSwap) {
      if (clock.has(instance.last)) to = clock.end(instance.last);
    } else if (const std::int64_t k = floor_divide(instance.last, n); k >= 0 && k < iterations) {
      to = simulator.out_end(static_cast<std::uint32_t>(it.out_swap), static_cast<std::uint64_t>(k));
    }
    if (instance.last < 0) continue;  // over before the first iteration
    if (to < from - kTolerance) return {name(problem, it.block) + " lets go of its bytes before it has them", 0};
    empty[j] = to - from <= 2 * kTolerance;
    // What takes no time lies between the ends and the begins of its moment.
    events.push_back({empty[j] ? from - kTolerance / 2 : from, true, j});
    events.push_back({to - kTolerance, false, j});
  }
  return Watch(problem, decisions, all).run(events, empty, simulator, timing.iterations);
}

}  // namespace memopt::swap
