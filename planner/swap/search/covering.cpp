#include "planner/swap/search/covering.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/swap/evaluation/eviction_candidates.h"
#include "planner/swap/model/load.h"

namespace memopt::swap {
namespace {

// What an eviction lacks of time for its copies, somebody waits for; what its copies take, others do.
constexpr double kPriceOfWaiting = 1;

class Covering {
 public:
  Covering(const Problem& problem, const Liveness& liveness, std::uint64_t goal)
      : problem_(problem),
        n_(liveness.operations),
        liveness_(liveness),
        goal_(goal),
        candidates_(find_eviction_candidates(problem, liveness, limits())),
        used_(candidates_.evictions.size()),
        of_item_(candidates_.items.size()),
        load_(live_load(problem, liveness)),
        excess_(2 * n_ + 1),
        above_(2 * n_ + 1) {
    for (const Eviction& eviction : candidates_.evictions) {
      const double copies = problem.machine.out_ns(bytes_of(eviction)) +
                            (eviction.returns() ? problem.machine.in_ns(bytes_of(eviction)) : 0);
      cost_.push_back(copies + kPriceOfWaiting * eviction.short_ns);
    }
  }

  std::optional<Decisions> run() {
    std::vector<std::uint32_t> order;
    while (find_excess()) {
      const std::uint32_t chosen = best();
      if (chosen == kNone) return std::nullopt;
      use(chosen, true);
      order.push_back(chosen);
    }
    // Again, where some were left out: a block that is not swapped any more takes no whole chunks.
    for (bool changed = true; std::exchange(changed, false);) {
      for (auto last = order.rbegin(); last != order.rend(); ++last) {
        if (used_[*last] == 0) continue;
        use(*last, false);
        if (is_too_much()) {
          use(*last, true);
        } else {
          changed = true;
        }
      }
    }
    Decisions decisions;
    for (std::uint32_t a = 0; a < used_.size(); ++a) {
      if (used_[a] == 0) continue;
      const Eviction& eviction = candidates_.evictions[a];
      Swap swap;
      swap.block = candidates_.items[eviction.item].block;
      swap.out_after = eviction.leaves;
      if (eviction.returns()) {
        swap.in_after = eviction.needed - 1;
        swap.need = eviction.needed;
      }
      if (problem_.blocks[swap.block].persistent && swap.out_after >= n_) {
        swap.out_after -= n_;
        swap.in_after -= n_;
        swap.need -= n_;
      }
      decisions.swaps.push_back(swap);
    }
    std::stable_sort(decisions.swaps.begin(), decisions.swaps.end(),
                     [](const Swap& a, const Swap& b) { return a.need < b.need; });
    return decisions;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  static CandidateLimits limits() {
    CandidateLimits limits;
    limits.short_evictions = ~std::size_t{0};
    return limits;
  }

  std::uint64_t bytes_of(const Eviction& eviction) const {
    return problem_.blocks[candidates_.items[eviction.item].block].bytes;
  }
  // On the device: what is swapped has chunks of its own.
  std::uint64_t taken(std::uint64_t bytes) const {
    return problem_.layout ? (bytes + problem_.chunk - 1) / problem_.chunk * problem_.chunk : bytes;
  }

  std::pair<std::uint64_t, std::uint64_t> away(const Eviction& eviction) const {
    const std::uint32_t block = candidates_.items[eviction.item].block;
    return {eviction.leaves + 1, eviction.returns() ? eviction.needed : liveness_.of[block].freed + 1};
  }

  void use(std::uint32_t a, bool now) {
    const Eviction& eviction = candidates_.evictions[a];
    const std::uint64_t bytes = bytes_of(eviction);
    std::uint32_t& count = of_item_[eviction.item];
    if (count == (now ? 0U : 1U)) {
      const auto more = static_cast<std::int64_t>(taken(bytes) - bytes);
      load_.add_life(problem_, liveness_, candidates_.items[eviction.item].block, now ? more : -more);
    }
    count += now ? 1U : ~0U;
    used_[a] = now ? 1 : 0;
    const auto [from, to] = away(eviction);
    const auto size = static_cast<std::int64_t>(taken(bytes));
    load_.add(from, to, now ? -size : size);
  }

  bool is_too_much() { return load_.peak() > goal_; }

  // Sums of what is too much, and counts of where it is, over two iterations. False: it is too much nowhere.
  bool find_excess() {
    bool found = false;
    const std::vector<std::int64_t>& levels = load_.levels();
    for (std::uint64_t p = 0; p < 2 * n_; ++p) {
      const std::int64_t more = std::max<std::int64_t>(0, levels[p % n_] - static_cast<std::int64_t>(goal_));
      excess_[p + 1] = excess_[p] + static_cast<double>(more);
      above_[p + 1] = above_[p] + (more > 0 ? 1 : 0);
      found = found || more > 0;
    }
    return found;
  }

  std::uint32_t best() const {
    std::uint32_t best = kNone;
    double most = 0;
    for (std::uint32_t a = 0; a < used_.size(); ++a) {
      if (used_[a] != 0) continue;
      const auto [from, to] = away(candidates_.evictions[a]);
      if (from >= to) continue;
      const std::uint64_t begin = from % n_, end = begin + std::min(to - from, n_);
      const double most_of_it = static_cast<double>(above_[end] - above_[begin]) *
                                static_cast<double>(taken(bytes_of(candidates_.evictions[a])));
      // What has chunks of its own for it takes more all its life.
      const std::uint64_t bytes = bytes_of(candidates_.evictions[a]);
      const double part = static_cast<double>(bytes) / static_cast<double>(taken(bytes));
      const double gain = part * std::min(excess_[end] - excess_[begin], most_of_it) / cost_[a];
      if (gain <= most) continue;
      most = gain;
      best = a;
    }
    return best;
  }

  const Problem& problem_;
  const std::uint64_t n_;
  const Liveness& liveness_;
  const std::uint64_t goal_;
  const EvictionCandidates candidates_;
  std::vector<std::uint8_t> used_;      // by eviction
  std::vector<double> cost_;            // by eviction
  std::vector<std::uint32_t> of_item_;  // evictions of it that are used
  Load load_;
  std::vector<double> excess_;
  std::vector<std::uint64_t> above_;
};

}  // namespace

std::optional<Decisions> cover_load(const Problem& problem, const Liveness& liveness, std::uint64_t goal) {
  return Covering(problem, liveness, goal).run();
}

}  // namespace memopt::swap
