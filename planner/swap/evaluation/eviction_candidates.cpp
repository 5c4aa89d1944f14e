#include "planner/swap/evaluation/eviction_candidates.h"

#include <algorithm>
#include <numeric>

#include "planner/swap/simulation/clock.h"

namespace memopt::swap {
namespace {

constexpr std::uint64_t kStartsWithoutAccess = 16;

class Finder {
 public:
  Finder(const Problem& problem, const Liveness& liveness, const CandidateLimits& limits)
      : problem_(problem), liveness_(liveness), limits_(limits), clock_(problem) {}

  EvictionCandidates run() {
    for (const std::uint32_t block : chosen()) {
      item_ = {block, static_cast<std::uint32_t>(result_.evictions.size()), 0, 0};
      if (!problem_.blocks[block].pinned && may_be_away(block)) add_evictions();
      item_.evictions = static_cast<std::uint32_t>(result_.evictions.size()) - item_.first_eviction;
      result_.items.push_back(item_);
    }
    leave_out_the_shortest();
    return std::move(result_);
  }

 private:
  // Those whose size times time is largest, until the rest is small.
  std::vector<std::uint32_t> chosen() const {
    const std::uint64_t n = liveness_.operations;
    std::vector<double> area(problem_.blocks.size());
    for (std::uint32_t b = 0; b < area.size(); ++b) {
      const Lifetime& lifetime = liveness_.of[b];
      const std::uint64_t operations = problem_.blocks[b].persistent ? n : lifetime.freed + 1 - lifetime.start;
      area[b] = static_cast<double>(problem_.blocks[b].bytes) * static_cast<double>(operations);
    }
    std::vector<std::uint32_t> order(area.size());
    std::iota(order.begin(), order.end(), 0);
    // Large blocks first: a short one that is large still decides the height.
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::uint64_t x = problem_.blocks[a].bytes, y = problem_.blocks[b].bytes;
      return x != y ? x > y : area[a] != area[b] ? area[a] > area[b] : a < b;
    });
    double left = std::accumulate(area.begin(), area.end(), 0.0);
    const double enough = limits_.rest * static_cast<double>(liveness_.peak) * static_cast<double>(n);
    std::size_t count = 0;
    while (count < order.size() && count < limits_.items && problem_.blocks[order[count]].bytes > 0) {
      if (left <= enough && problem_.blocks[order[count]].bytes < least_item()) break;
      left -= area[order[count++]];
    }
    order.resize(count);
    std::sort(order.begin(), order.end());
    return order;
  }

  void leave_out_the_shortest() {
    std::vector<double> missing;
    for (const Eviction& one : result_.evictions) {
      if (one.short_ns > 0) missing.push_back(one.short_ns);
    }
    const std::size_t wanted = std::max(limits_.short_evictions, result_.evictions.size() - missing.size());
    if (missing.size() <= wanted) return;
    const auto last = missing.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
    std::nth_element(missing.begin(), last, missing.end());
    const double most = *last;
    std::vector<Eviction> kept;
    for (Item& item : result_.items) {
      const auto first = static_cast<std::uint32_t>(kept.size());
      for (std::uint32_t a = item.first_eviction; a < item.first_eviction + item.evictions; ++a) {
        if (result_.evictions[a].short_ns <= most) kept.push_back(result_.evictions[a]);
      }
      item.first_eviction = first;
      item.evictions = static_cast<std::uint32_t>(kept.size()) - first;
    }
    result_.evictions = std::move(kept);
  }

  bool may_be_away(std::uint32_t block) const {
    const std::uint64_t bytes = problem_.blocks[block].bytes;
    return bytes >= limits_.least_bytes ||
           static_cast<double>(bytes) >= limits_.least_part * static_cast<double>(liveness_.peak);
  }

  std::uint64_t least_item() const { return std::max<std::uint64_t>(1, liveness_.peak >> 11); }

  void add_evictions() {
    const Block& block = problem_.blocks[item_.block];
    const auto accesses = liveness_.accesses_of(item_.block);
    const std::uint64_t n = liveness_.operations;
    if (!block.persistent) {
      // What it holds before the first access means nothing, but that is not recorded.
      const Lifetime& lifetime = liveness_.of[item_.block];
      if (!problem_.lazy_malloc) add(lifetime.born, accesses.empty() ? kNever : accesses.front().position, false);
      if (accesses.empty()) return;
    }
    if (accesses.empty()) {
      std::uint64_t before = kNever;
      for (std::uint64_t k = 0; k < kStartsWithoutAccess; ++k) {
        const std::uint64_t start = k * n / kStartsWithoutAccess;
        if (start != before) add(start, start + n, false);
        before = start;
      }
      return;
    }
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      const bool last = k + 1 == accesses.size();
      const std::uint64_t around = block.persistent ? accesses.front().position + n : kNever;
      item_.writes += accesses[k].write ? 1 : 0;
      add(accesses[k].position, last ? around : accesses[k + 1].position, !accesses[k].write);
    }
  }

  // All blocks of a launch are there until it is over, whatever its operations' order.
  bool is_one_launch(std::uint64_t first, std::uint64_t last) const {
    const std::uint64_t n = liveness_.operations;
    for (std::uint64_t at = first + 1; at <= last; ++at) {
      if (!problem_.operations[at % n].continues) return false;
    }
    return true;
  }

  // `read`: the operation by which it leaves only reads it.
  void add(std::uint64_t leaves, std::uint64_t needed, bool read) {
    const std::uint64_t bytes = problem_.blocks[item_.block].bytes;
    const Machine& machine = problem_.machine;
    const bool returns = needed != kNever;
    if (returns && is_one_launch(leaves, needed)) return;
    const double end = clock_.begin(returns ? needed : liveness_.of[item_.block].freed);
    const double out = read && problem_.clean_drops ? 0 : machine.out_ns(bytes);
    const double copies = out + (returns ? machine.in_ns(bytes) : 0);
    const double missing = copies - (end - clock_.end(leaves));
    if (missing > 0 && limits_.short_evictions == 0) return;
    result_.evictions.push_back(
        {static_cast<std::uint32_t>(result_.items.size()), leaves, needed, std::max(0.0, missing), item_.writes});
  }

  const Problem& problem_;
  const Liveness& liveness_;
  const CandidateLimits& limits_;
  Clock clock_;
  Item item_;
  EvictionCandidates result_;
};

}  // namespace

EvictionCandidates find_eviction_candidates(const Problem& problem, const Liveness& liveness,
                                            const CandidateLimits& limits) {
  return Finder(problem, liveness, limits).run();
}

}  // namespace memopt::swap
