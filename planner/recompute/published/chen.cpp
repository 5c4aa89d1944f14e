#include "planner/recompute/published/chen.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/recompute/published/forward.h"
#include "planner/recompute/published/remaking.h"

namespace memopt::recompute {
namespace {

constexpr int kBudgets = 20;           // that are tried first
constexpr int kBudgetsAround = 5;      // the best of these, on each side
constexpr std::size_t kEachTail = 32;  // so many launches, or fewer: each is tried as the first of the last segment
constexpr std::size_t kThresholds = 64;

using Starts = std::vector<std::uint32_t>;

// Some blocks are gone at the turn, and come back in groups.
class Groups : public Strategy {
 public:
  // By block: its group, ascending from 0, or kNone: it stays. `together`: else each comes back by itself.
  Groups(const Graph& graph, const Forward& forward, std::vector<std::uint32_t> group, bool together)
      : forward_(forward), group_(std::move(group)), together_(together) {
    for (std::uint32_t b = 0; b < group_.size(); ++b) {
      if (group_[b] != kNone) leaving_.push_back(b);
    }
    if (!together) return;
    std::sort(leaving_.begin(), leaving_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(group_[a], graph.makers[a].back(), a) < std::tuple(group_[b], graph.makers[b].back(), b);
    });
    for (std::uint32_t k = 0; k < leaving_.size(); ++k) {
      const std::uint32_t its = group_[leaving_[k]];
      while (begin_.size() <= its) begin_.push_back(k);
    }
    begin_.push_back(static_cast<std::uint32_t>(leaving_.size()));
  }

  void turn(Remaking& remaking) override {
    for (const std::uint32_t b : leaving_) remaking.forget(b);
  }

  bool provide(Remaking& remaking, std::uint32_t launch, const std::vector<std::uint32_t>& missing) override {
    const auto is_used = [&](std::uint32_t b) {
      return forward_.last_read[b] != kNone && forward_.last_read[b] >= launch;
    };
    for (const std::uint32_t wanted : missing) {
      const std::uint32_t its = group_[wanted];
      if (together_ && its != kNone) {
        for (std::uint32_t k = begin_[its]; k < begin_[its + 1]; ++k) {
          if (is_used(leaving_[k]) && !remaking.fetch(leaving_[k])) return false;
        }
      }
      if (!remaking.fetch(wanted)) return false;
    }
    remaking.forget_made(is_used);
    return true;
  }

 private:
  const Forward& forward_;
  std::vector<std::uint32_t> group_, leaving_, begin_;
  const bool together_;
};

// A block goes with the segment of the launch that makes it first, if no later segment uses it. The last one stays.
Groups segments(const Graph& graph, const Forward& forward, std::span<const std::uint32_t> starts) {
  std::vector<std::uint32_t> group(graph.makers.size(), kNone);
  std::uint32_t segment = 0, begin = 0;
  for (const std::uint32_t end : starts) {
    if (end >= forward.launches) break;
    for (std::uint32_t l = begin; l < end; ++l) {
      for (const std::uint32_t b : forward.made_by(l)) {
        if (forward.may_leave[b] != 0 && !forward.is_used_within(b, end, kNone)) group[b] = segment;
      }
    }
    begin = end;
    ++segment;
  }
  return {graph, forward, std::move(group), true};
}

// At any time behind the turn there is a path, from all forward launches down to the one whose block is needed: each
// range on it is a part of the one before. Of each range, what its parts up to there hand on to each other is kept.
class Nested : public Strategy {
 public:
  Nested(const Graph& graph, const Forward& forward, std::uint32_t parts)
      : graph_(graph), forward_(forward), parts_(parts), read_at_(graph.makers.size(), kNone) {}

  void turn(Remaking& remaking) override {
    if (forward_.launches == 0) return;
    path_ = path_to(forward_.launches - 1);
    forget_within(remaking, path_.front());
  }

  bool provide(Remaking& remaking, std::uint32_t launch, const std::vector<std::uint32_t>& missing) override {
    for (const Use& read : graph_.launches[launch].reads) read_at_[read.block] = launch;
    launch_ = launch;
    // Backward, the latest comes first. What else this launch reads is made for it alone.
    std::uint32_t latest = 0;
    for (const std::uint32_t b : missing) latest = std::max(latest, graph_.makers[b].front());
    if (latest < forward_.launches) move_to(remaking, latest);
    for (const std::uint32_t b : missing) {
      if (!remaking.fetch(b)) return false;
    }
    remaking.forget_made([&](std::uint32_t b) { return stays(b); });
    return true;
  }

 private:
  struct Range {
    std::uint32_t begin = 0, end = 0;

    bool holds(std::uint32_t launch) const { return launch >= begin && launch < end; }
    friend bool operator==(const Range&, const Range&) = default;
  };

  Range part_of(const Range& range, std::uint32_t launch) const {
    const std::uint32_t length = (range.end - range.begin + parts_ - 1) / parts_;
    const std::uint32_t begin = range.begin + (launch - range.begin) / length * length;
    return {begin, std::min(begin + length, range.end)};
  }

  std::vector<Range> path_to(std::uint32_t launch) const {
    std::vector<Range> path = {{0, forward_.launches}};
    while (path.back().end - path.back().begin > 1) path.push_back(part_of(path.back(), launch));
    return path;
  }

  // Made in one part of the range, and used in a later one.
  bool crosses(const Range& range, std::uint32_t block) const {
    return forward_.is_used_within(block, part_of(range, graph_.makers[block].front()).end, range.end);
  }

  bool stays(std::uint32_t block) const {
    if (read_at_[block] == launch_) return true;
    for (const Range& range : path_) {
      if (!range.holds(graph_.makers[block].front())) return false;
      if (range.end - range.begin == 1 || crosses(range, block)) return true;
    }
    return false;
  }

  void forget_within(Remaking& remaking, const Range& range) const {
    for (std::uint32_t l = range.begin; l < range.end; ++l) {
      for (const std::uint32_t b : forward_.made_by(l)) {
        if (forward_.may_leave[b] != 0 && remaking.is_there(b) && !stays(b)) remaking.forget(b);
      }
    }
  }

  void move_to(Remaking& remaking, std::uint32_t launch) {
    std::vector<Range> path = path_to(launch);
    std::size_t common = 0;
    while (common < path.size() && common < path_.size() && path[common] == path_[common]) ++common;
    path_.swap(path);
    if (common < path.size()) forget_within(remaking, path[common]);
    for (std::size_t k = common; k + 1 < path_.size(); ++k) {
      for (std::uint32_t l = path_[k].begin; l < path_[k + 1].begin; ++l) {
        for (const std::uint32_t b : forward_.made_by(l)) {
          // Where it can't be made any more, nothing needs it.
          if (forward_.may_leave[b] != 0 && crosses(path_[k], b)) remaking.fetch(b);
        }
      }
      remaking.forget_made([&](std::uint32_t b) { return stays(b); });
    }
  }

  const Graph& graph_;
  const Forward& forward_;
  const std::uint32_t parts_;
  std::vector<Range> path_;
  std::vector<std::uint32_t> read_at_;  // by block: by which launch that missed something
  std::uint32_t launch_ = 0;
};

class Planner {
 public:
  Planner(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t limit,
          const std::function<bool()>& ends)
      : problem_(problem), liveness_(liveness), graph_(graph), limit_(limit), ends_(ends), forward_(problem, graph) {
    for (std::uint32_t l = 0; l < forward_.launches; ++l) {
      std::uint64_t bytes = 0;
      for (const std::uint32_t b : forward_.made_by(l)) bytes += problem.blocks[b].bytes;
      bytes_.push_back(bytes);
    }
  }

  std::optional<Steps> run(Chen strategy) {
    switch (strategy) {
      case Chen::kSqrt:
        by_root();
        break;
      case Chen::kBudget:
        by_root();
        by_budget(false);
        by_budget(true);
        break;
      case Chen::kRecursive:
        by_recursion();
        break;
      case Chen::kDropCheap:
        by_threshold();
        break;
    }
    return std::move(best_);
  }

 private:
  // Whether it stays within the limit.
  bool offer(Strategy& strategy) {
    if (ends_ && ends_()) return false;
    std::optional<Steps> steps = follow(problem_, graph_, forward_, strategy);
    if (!steps) return false;
    const Cost cost = find_cost(problem_, liveness_, graph_, *steps);
    if (cost.fault || cost.peak > limit_) return false;
    if (!best_ || cost.added_ns < best_ns_) {
      best_ = std::move(steps);
      best_ns_ = cost.added_ns;
    }
    return true;
  }

  bool offer(const Starts& starts) {
    Groups groups = segments(graph_, forward_, starts);
    return offer(groups);
  }

  void by_root() {
    const std::uint32_t n = forward_.launches;
    const auto count = static_cast<std::uint32_t>(std::lround(std::sqrt(n)));
    Starts starts;
    for (std::uint32_t k = 1; k < count; ++k)
      starts.push_back(static_cast<std::uint32_t>(std::uint64_t{k} * n / count));
    offer(starts);
  }

  // With `kept`, what earlier segments keep counts with each, so that later segments are smaller.
  Starts cut(std::uint64_t budget, bool kept, std::uint32_t end) const {
    Starts starts;
    std::uint64_t sum = 0, before = 0;
    std::uint32_t begin = 0;
    for (std::uint32_t l = 0; l < end; ++l) {
      if (sum > 0 && before + sum + bytes_[l] > budget) {
        if (kept) before += kept_of(begin, l);
        starts.push_back(begin = l);
        sum = 0;
      }
      sum += bytes_[l];
    }
    if (end > 0) starts.push_back(end);
    return starts;
  }

  std::uint64_t kept_of(std::uint32_t begin, std::uint32_t end) const {
    std::uint64_t bytes = 0;
    for (std::uint32_t l = begin; l < end; ++l) {
      for (const std::uint32_t b : forward_.made_by(l)) {
        if (forward_.is_used_within(b, end, kNone)) bytes += problem_.blocks[b].bytes;
      }
    }
    return bytes;
  }

  // The longest last segment that goes with the budget; the longer, the more memory, nearly always.
  void with_budget(std::uint64_t budget, bool kept) {
    const std::uint32_t n = forward_.launches;
    if (!tried_.insert(cut(budget, kept, n)).second) return;
    if (n <= kEachTail) {
      for (std::uint32_t tail = 0; tail < n; ++tail) offer(cut(budget, kept, tail));
      return;
    }
    std::uint32_t low = 0, high = n;
    while (low < high) {
      const std::uint32_t tail = low + (high - low) / 2;
      if (offer(cut(budget, kept, tail))) {
        high = tail;
      } else {
        low = tail + 1;
      }
    }
  }

  void by_budget(bool kept) {
    const std::uint64_t sum = std::accumulate(bytes_.begin(), bytes_.end(), std::uint64_t{0});
    if (sum == 0) {
      offer(Starts());
      return;
    }
    const auto least = static_cast<double>(*std::max_element(bytes_.begin(), bytes_.end()));
    const double ratio = std::pow(static_cast<double>(sum) / least, 1.0 / (kBudgets - 1));
    double best = least;
    const auto attempt = [&](double budget) {
      const double before = best_ ? best_ns_ : std::numeric_limits<double>::infinity();
      with_budget(static_cast<std::uint64_t>(budget), kept);
      if (best_ && best_ns_ < before) best = budget;
    };
    for (int k = 0; k < kBudgets; ++k) attempt(std::ceil(least * std::pow(ratio, k)));
    const double middle = best;
    for (int k = 1; k <= kBudgetsAround; ++k) {
      const double by = std::pow(ratio, static_cast<double>(k) / (kBudgetsAround + 1));
      attempt(middle / by);
      attempt(middle * by);
    }
  }

  void by_recursion() {
    for (std::uint32_t parts = 2;; parts += 1 + parts / 4) {
      Nested nested(graph_, forward_, parts);
      offer(nested);
      if (parts >= forward_.launches) return;
    }
  }

  void by_threshold() {
    std::vector<double> price(graph_.makers.size());
    std::vector<double> thresholds;
    for (std::uint32_t b = 0; b < price.size(); ++b) {
      if (forward_.may_leave[b] == 0) continue;
      price[b] = graph_.make_ns(b) / static_cast<double>(problem_.blocks[b].bytes);
      thresholds.push_back(price[b]);
    }
    std::sort(thresholds.begin(), thresholds.end());
    thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
    const std::size_t count = std::min(thresholds.size(), kThresholds);
    for (std::size_t k = 0; k <= count; ++k) {
      std::vector<std::uint32_t> group(price.size(), kNone);
      for (std::uint32_t b = 0; k > 0 && b < price.size(); ++b) {
        if (forward_.may_leave[b] != 0 && price[b] <= thresholds[k * thresholds.size() / count - 1]) group[b] = 0;
      }
      Groups each(graph_, forward_, std::move(group), false);
      offer(each);
    }
  }

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  const std::uint64_t limit_;
  const std::function<bool()>& ends_;
  const Forward forward_;
  std::vector<std::uint64_t> bytes_;  // by forward launch: of what it makes first
  std::set<Starts> tried_;
  std::optional<Steps> best_;
  double best_ns_ = 0;
};

}  // namespace

std::optional<Steps> chen(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                          Chen strategy, std::uint64_t limit, const std::function<bool()>& ends) {
  return Planner(problem, liveness, graph, limit, ends).run(strategy);
}

std::optional<Steps> keep_segments(const swap::Problem& problem, const Graph& graph,
                                   std::span<const std::uint32_t> starts) {
  const Forward forward(problem, graph);
  Groups groups = segments(graph, forward, starts);
  return follow(problem, graph, forward, groups);
}

}  // namespace memopt::recompute
