#include "planner/layout/local_search/ejection_search.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "planner/layout/local_search/step_function.h"
#include "planner/layout/problem/bounds.h"
#include "planner/layout/problem/random.h"
#include "planner/layout/problem/validation.h"
#include "planner/layout/skyline/priorities.h"
#include "planner/layout/skyline/skyline.h"

namespace memopt::layout {
namespace {

constexpr double kGapFractionGain = 2;
constexpr double kGapFractionLoss = 0.7;
constexpr double kMostPerturbed = 0.1;  // of all buffers, ejected after a failure
constexpr std::uint64_t kLargestWeight = std::uint64_t{1} << 24;
constexpr std::uint64_t kBuffersPerStep = 20;  // of the allowance

// Offset is the narrowest type that holds all heights: a step mostly compares arrays of it.
template <typename Offset>
class Search final : public EjectionSearch {
 public:
  Search(const Problem& problem, const Sections& sections, const EjectionRules& rules, std::uint64_t unit,
         std::uint64_t seed)
      : problem_(problem),
        sections_(sections),
        rules_(rules),
        unit_(unit),
        random_(seed),
        gap_fraction_(rules.gap_fraction),
        floor_(sections.count),
        ceiling_(sections.count) {
    const std::size_t count = problem.buffers.size();
    for (const Buffer& buffer : problem.buffers) {
      const bool anywhere = unit % buffer.alignment == 0;
      bytes_.push_back(static_cast<Offset>(buffer.bytes / unit));
      alignment_.push_back(anywhere ? 1 : static_cast<Offset>(buffer.alignment / unit));
    }
    lowest_.resize(count);
    highest_.resize(count);
    placed_.resize(count);
    weigh();
  }

  void improve(const Solution& best, std::uint64_t goal, Allowance& allowance,
               const std::function<void(Solution)>& found) override {
    // A bound need not be a multiple of the unit, but heights are.
    const std::uint64_t goal_units = (goal + (problem_.capacity ? 0 : unit_ - 1)) / unit_;
    Solution found_here;
    const Solution* from = &best;
    while (from->height / unit_ > goal_units && !infeasible_ && !allowance.over()) {
      if (!started_ || from->height / unit_ <= static_cast<std::uint64_t>(target_)) {
        start(*from, goal_units);
      } else if (pool_.empty()) {
        found_here = solution();
        from = &found_here;
        started_ = false;
        failures_ = 0;
        gap_fraction_ = std::min(1.0, gap_fraction_ * kGapFractionGain);
        found(found_here);
      } else if (++steps_ > rules_.patience) {
        started_ = false;
        ++failures_;
        gap_fraction_ *= kGapFractionLoss;
      } else {
        reinsert();
      }
      allowance.spend(1 + problem_.buffers.size() / kBuffersPerStep);
    }
  }

 private:
  struct Event {
    Offset at;
    bool begin;
    std::uint32_t buffer;
  };

  // Integers, so that sums do not depend on their order.
  void weigh() {
    std::vector<double> weights;
    for (const Buffer& buffer : problem_.buffers) {
      std::uint64_t length = 0;
      for (const SectionRange& range : sections_.of(buffer)) length += range.length();
      weights.push_back(static_cast<double>(buffer.bytes) * (rules_.by_area ? static_cast<double>(length) : 1));
    }
    const double largest = weights.empty() ? 1 : *std::max_element(weights.begin(), weights.end());
    for (const double weight : weights) {
      weight_.push_back(1 + static_cast<std::uint64_t>(weight / largest * static_cast<double>(kLargestWeight)));
    }
    penalty_ = weight_;
  }

  bool fixed(std::uint32_t buffer) const { return problem_.buffers[buffer].fixed != kAnywhere; }
  Offset top(std::uint32_t buffer) const { return lowest_[buffer] + bytes_[buffer]; }
  std::span<const SectionRange> ranges(std::uint32_t buffer) const { return sections_.of(problem_.buffers[buffer]); }

  Offset up(std::uint32_t buffer, Offset offset) const {
    const Offset alignment = alignment_[buffer];
    return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
  }
  Offset down(std::uint32_t buffer, Offset offset) const {
    return alignment_[buffer] == 1 ? offset : offset / alignment_[buffer] * alignment_[buffer];
  }

  // Starts from all buffers of `from` that stay below a new target, in its order. After failures some others are
  // ejected, too (a perturbation, so that the search does not repeat itself).
  void start(const Solution& from, std::uint64_t goal_units) {
    const std::uint64_t reached = from.height / unit_;
    const auto part = static_cast<std::uint64_t>(static_cast<double>(reached - goal_units) * gap_fraction_);
    target_ = static_cast<Offset>(std::max(goal_units, reached - std::max<std::uint64_t>(1, part)));
    const double perturbed = failures_ == 0 ? 0 : kMostPerturbed * random_.fraction() * random_.fraction();
    started_ = true;
    steps_ = 0;
    order_.resize(problem_.buffers.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return from.offsets[a] != from.offsets[b] ? from.offsets[a] < from.offsets[b] : a < b;
    });
    pool_.clear();
    floor_.reset(0);
    std::erase_if(order_, [&](std::uint32_t b) {
      const Offset floor = fixed(b) ? static_cast<Offset>(problem_.buffers[b].fixed / unit_) : up(b, floor_over(b));
      placed_[b] = floor + bytes_[b] <= target_ && (fixed(b) || random_.fraction() >= perturbed);
      if (placed_[b]) {
        fill(floor_, b, floor + bytes_[b]);
      } else {
        pool_.push_back(b);
      }
      return !placed_[b];
    });
    settle_lowest(0);
    settle_highest(order_.size());
  }

  Offset floor_over(std::uint32_t buffer) const {
    Offset floor = 0;
    for (const SectionRange& range : ranges(buffer)) floor = std::max(floor, floor_.most(range.lo, range.hi));
    return floor;
  }

  Offset ceiling_over(std::uint32_t buffer) const {
    Offset ceiling = target_;
    for (const SectionRange& range : ranges(buffer)) ceiling = std::min(ceiling, ceiling_.least(range.lo, range.hi));
    return ceiling;
  }

  void fill(StepFunction<Offset>& function, std::uint32_t buffer, Offset value) {
    for (const SectionRange& range : ranges(buffer)) function.set(range.lo, range.hi, value);
  }

  // Recomputes the lowest offsets from the position `first` of the order on; those before it have not changed.
  void settle_lowest(std::size_t first) {
    floor_.reset(0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::uint32_t b = order_[i];
      if (i >= first) {
        lowest_[b] = fixed(b) ? static_cast<Offset>(problem_.buffers[b].fixed / unit_) : up(b, floor_over(b));
      }
      fill(floor_, b, top(b));
    }
  }

  // Recomputes the highest offsets of those before the position `end`; those from there on have not changed.
  void settle_highest(std::size_t end) {
    ceiling_.reset(target_);
    for (std::size_t i = order_.size(); i-- > 0;) {
      const std::uint32_t b = order_[i];
      if (i < end) {
        highest_[b] =
            fixed(b) ? static_cast<Offset>(problem_.buffers[b].fixed / unit_) : down(b, ceiling_over(b) - bytes_[b]);
      }
      fill(ceiling_, b, highest_[b]);
    }
  }

  void reinsert() {
    if (rules_.largest_first) {
      std::swap(*std::max_element(pool_.begin(), pool_.end(),
                                  [&](std::uint32_t a, std::uint32_t b) { return weight_[a] < weight_[b]; }),
                pool_.back());
    } else {
      std::swap(pool_[random_.next() % pool_.size()], pool_.back());
    }
    const std::uint32_t buffer = pool_.back();
    Offset offset = 0;
    const std::uint64_t cost = cheapest(buffer, offset);
    if (cost == kImpossible) {
      infeasible_ = true;  // fixed buffers leave no offset for it
      return;
    }
    pool_.pop_back();
    if (cost > 0) {
      penalty_[buffer] += weight_[buffer];
      for (const std::uint32_t other : neighbours_) {
        if (top(other) <= offset || highest_[other] >= offset + bytes_[buffer]) continue;
        placed_[other] = false;
        pool_.push_back(other);
      }
    }
    const std::size_t position = insert(buffer, offset);
    settle_lowest(position);
    settle_highest(cost > 0 ? order_.size() : position + 1);
  }

  static constexpr std::uint64_t kImpossible = std::numeric_limits<std::uint64_t>::max();

  // The least sum of the penalties of those that have to be ejected, and one of the offsets with that cost; sets
  // `neighbours_` to the placed buffers that conflict with it in time.
  std::uint64_t cheapest(std::uint32_t buffer, Offset& offset) {
    neighbours_.clear();
    events_.clear();
    const Offset bytes = bytes_[buffer];
    for (const std::uint32_t other : order_) {
      if (!overlap(ranges(other), ranges(buffer))) continue;
      neighbours_.push_back(other);
      const Offset first = std::max<Offset>(0, highest_[other] - bytes + 1);
      if (first >= top(other)) continue;
      events_.push_back({first, true, other});
      events_.push_back({top(other), false, other});
    }
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
    const Offset end = target_ - bytes + 1;
    std::uint64_t least = kImpossible;
    std::uint64_t cost = 0;
    std::uint64_t ties = 0;
    int blocked = 0;
    std::size_t i = 0;
    for (Offset at = 0; at < end; at = events_[i].at) {
      for (; i < events_.size() && events_[i].at <= at; ++i) {
        const Event& event = events_[i];
        if (fixed(event.buffer)) {
          blocked += event.begin ? 1 : -1;
        } else {
          cost += event.begin ? penalty_[event.buffer] : -penalty_[event.buffer];
        }
      }
      const Offset place = up(buffer, at);
      if (blocked == 0 && cost <= least && place < (i < events_.size() ? std::min(end, events_[i].at) : end)) {
        if (cost < least) ties = 0;
        least = cost;
        if (random_.next() % ++ties == 0) offset = place;
      }
      if (i == events_.size()) break;
    }
    return least;
  }

  // Inserts it above all that end at `offset` or below, and below all others. Returns its position in the order.
  std::size_t insert(std::uint32_t buffer, Offset offset) {
    above_.clear();
    std::size_t kept = 0;
    for (const std::uint32_t other : order_) {
      if (!placed_[other]) continue;
      if (top(other) <= offset) {
        order_[kept++] = other;
      } else {
        above_.push_back(other);
      }
    }
    order_.resize(kept);
    order_.push_back(buffer);
    order_.insert(order_.end(), above_.begin(), above_.end());
    placed_[buffer] = true;
    return kept;
  }

  Solution solution() const {
    Solution solution;
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      solution.offsets.push_back(static_cast<std::uint64_t>(lowest_[b]) * unit_);
      solution.height = std::max(solution.height, solution.offsets.back() + problem_.buffers[b].bytes);
    }
    return solution;
  }

  const Problem& problem_;
  const Sections& sections_;
  const EjectionRules rules_;
  const std::uint64_t unit_;
  Random random_;
  std::vector<Offset> bytes_;
  std::vector<Offset> alignment_;
  std::vector<std::uint64_t> weight_;
  std::vector<std::uint64_t> penalty_;
  double gap_fraction_;
  bool infeasible_ = false;

  bool started_ = false;
  unsigned failures_ = 0;  // since the last solution
  unsigned steps_ = 0;
  Offset target_ = 0;
  std::vector<std::uint32_t> order_;  // of those placed: of any two that overlap in time the lower comes first
  std::vector<std::uint32_t> pool_;   // the ejection pool: the others
  std::vector<char> placed_;
  std::vector<Offset> lowest_;   // possible offset of those placed
  std::vector<Offset> highest_;  // possible offset
  StepFunction<Offset> floor_;
  StepFunction<Offset> ceiling_;
  std::vector<std::uint32_t> neighbours_;
  std::vector<std::uint32_t> above_;
  std::vector<Event> events_;
};

}  // namespace

std::unique_ptr<EjectionSearch> EjectionSearch::make(const Problem& problem, const Sections& sections,
                                                     const EjectionRules& rules, std::uint64_t seed) {
  const std::uint64_t unit = unit_of(problem);
  std::uint64_t most = 0;  // no target is higher than all stacked
  for (const Buffer& buffer : problem.buffers) {
    most = std::max(most, buffer.fixed == kAnywhere ? 0 : buffer.fixed / unit);
  }
  for (const Buffer& buffer : problem.buffers) most += (buffer.bytes + buffer.alignment) / unit + 1;
  if (most < std::uint64_t{std::numeric_limits<std::int32_t>::max()} / 2) {
    return std::make_unique<Search<std::int32_t>>(problem, sections, rules, unit, seed);
  }
  return std::make_unique<Search<std::int64_t>>(problem, sections, rules, unit, seed);
}

Outcome ejection_search(const Problem& problem, const Limits& limits) {
  const Deadline deadline(limits);
  Allowance allowance(deadline, limits.work);
  const Sections sections(problem);
  const std::uint64_t bound = load_bound(problem);
  std::vector<std::uint32_t> priorities;
  rank(problem, sections, lifetimes_of(problem), priorities);
  Solution best;
  if (!Skyline(problem, sections).run(priorities, std::numeric_limits<std::uint64_t>::max(), allowance, best)) {
    best = stacked(problem);
  }
  const auto search =
      EjectionSearch::make(problem, sections, kEjectionRules[limits.seed % std::size(kEjectionRules)], limits.seed);
  const std::uint64_t goal = std::max(bound, problem.capacity.value_or(0));
  while (best.height > goal && !allowance.over()) {
    const std::uint64_t used = allowance.used();
    search->improve(Solution(best), goal, allowance, [&](Solution better) { best = std::move(better); });
    if (allowance.used() == used) break;
  }
  return outcome_of(problem, std::move(best.offsets), bound, "ejection-search");
}

}  // namespace memopt::layout
