#include "planner/swap/search/covering.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "planner/swap/model/load.h"

namespace memopt::swap {
namespace {

// What an eviction lacks of time for its copies, somebody waits for; what its copies take, others do.
constexpr double kPriceOfWaiting = 1;

CandidateLimits all_evictions() {
  CandidateLimits limits;
  limits.short_evictions = ~std::size_t{0};
  return limits;
}

}  // namespace

Covering::Covering(const Problem& problem, const Liveness& liveness)
    : problem_(problem),
      n_(liveness.operations),
      liveness_(liveness),
      candidates_(find_eviction_candidates(problem, liveness, all_evictions())),
      used_(candidates_.evictions.size()),
      of_item_(candidates_.items.size()) {
  for (const Eviction& eviction : candidates_.evictions) {
    const double copies = problem.machine.out_ns(bytes_of(eviction)) +
                          (eviction.returns() ? problem.machine.in_ns(bytes_of(eviction)) : 0);
    cost_.push_back(copies + kPriceOfWaiting * eviction.short_ns);
  }
  find_segments();
}

void Covering::find_segments() {
  begins_ = {0, n_};
  const auto cut = [&](std::uint64_t from, std::uint64_t to) {
    begins_.push_back(from % n_);
    begins_.push_back(to % n_);
  };
  const auto life_of = [&](const Item& item) {
    const Lifetime& lifetime = liveness_.of[item.block];
    return problem_.blocks[item.block].persistent ? std::pair(std::uint64_t{0}, n_)
                                                  : std::pair(lifetime.start, lifetime.freed + 1);
  };
  for (std::uint32_t a = 0; a < used_.size(); ++a) cut(away(a).first, away(a).second);
  for (const Item& item : candidates_.items) cut(life_of(item).first, life_of(item).second);
  std::sort(begins_.begin(), begins_.end());
  begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
  for (std::uint32_t a = 0; a < used_.size(); ++a) away_.push_back(range_of(away(a).first, away(a).second));
  for (const Item& item : candidates_.items) life_.push_back(range_of(life_of(item).first, life_of(item).second));
  Load live = live_load(problem_, liveness_);
  const std::vector<std::int64_t>& levels = live.levels();
  const std::size_t count = begins_.size() - 1;
  for (std::size_t s = 0; s < count; ++s) {
    const auto at = [&](std::uint64_t operation) { return levels.begin() + static_cast<std::ptrdiff_t>(operation); };
    lives_.push_back(*std::max_element(at(begins_[s]), at(begins_[s + 1])));
  }
  changes_.resize(count + 1);
  levels_.resize(count);
  excess_.resize(2 * count + 1);
  above_.resize(2 * count + 1);
}

Covering::Range Covering::range_of(std::uint64_t from, std::uint64_t to) const {
  if (from >= to) return {};
  const auto segment = [&](std::uint64_t operation) {
    return static_cast<std::uint32_t>(std::lower_bound(begins_.begin(), begins_.end(), operation) - begins_.begin());
  };
  const auto count = static_cast<std::uint32_t>(begins_.size() - 1);
  Range range;
  range.whole = static_cast<std::int64_t>((to - from) / n_);
  range.begin = segment(from % n_);
  const std::uint64_t end = from % n_ + (to - from) % n_;
  range.end = end <= n_ ? segment(end) : count + segment(end - n_);
  return range;
}

void Covering::add(const Range& range, std::int64_t bytes) {
  const auto count = static_cast<std::uint32_t>(levels_.size());
  everywhere_ += range.whole * bytes;
  changes_[range.begin] += bytes;
  changes_[std::min(range.end, count)] -= bytes;
  if (range.end <= count) return;
  changes_[0] += bytes;
  changes_[range.end - count] -= bytes;
}

std::uint64_t Covering::load() {
  std::int64_t change = everywhere_;
  std::int64_t highest = 0;
  for (std::size_t s = 0; s < levels_.size(); ++s) {
    change += changes_[s];
    levels_[s] = lives_[s] + change;
    highest = std::max(highest, levels_[s]);
  }
  return static_cast<std::uint64_t>(highest);
}

std::uint64_t Covering::bytes_of(const Eviction& eviction) const {
  return problem_.blocks[candidates_.items[eviction.item].block].bytes;
}

// On the device: what is swapped has chunks of its own.
std::uint64_t Covering::taken(std::uint64_t bytes) const {
  return problem_.layout ? chunks_of(problem_, bytes) * problem_.chunk : bytes;
}

std::pair<std::uint64_t, std::uint64_t> Covering::away(std::uint32_t eviction) const {
  const Eviction& one = candidates_.evictions[eviction];
  const std::uint32_t block = candidates_.items[one.item].block;
  return {one.leaves + 1, one.returns() ? one.needed : liveness_.of[block].freed + 1};
}

void Covering::use(std::uint32_t eviction, bool now) {
  const Eviction& one = candidates_.evictions[eviction];
  const std::uint64_t bytes = bytes_of(one);
  std::uint32_t& count = of_item_[one.item];
  if (count == (now ? 0U : 1U)) {
    const auto more = static_cast<std::int64_t>(taken(bytes) - bytes);
    add(life_[one.item], now ? more : -more);
  }
  count += now ? 1U : ~0U;
  used_[eviction] = now ? 1 : 0;
  const auto size = static_cast<std::int64_t>(taken(bytes));
  add(away_[eviction], now ? -size : size);
}

bool Covering::cover(std::uint64_t goal, std::span<const double> factors, const std::function<bool()>& ends) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t a = 0; a < used_.size(); ++a) {
    if (used_[a] != 0) order.push_back(a);
  }
  while (load() > goal) {
    if (ends && ends()) return false;
    find_excess(goal);
    const std::uint32_t chosen = best(factors);
    if (chosen == kNone) return false;
    use(chosen, true);
    order.push_back(chosen);
  }
  // Again, where some were left out: a block that is not swapped any more takes no whole chunks.
  for (bool changed = true; std::exchange(changed, false);) {
    for (auto last = order.rbegin(); last != order.rend(); ++last) {
      if (used_[*last] == 0) continue;
      if (ends && ends()) return true;
      use(*last, false);
      if (load() > goal) {
        use(*last, true);
      } else {
        changed = true;
      }
    }
  }
  return true;
}

Decisions Covering::decisions() const {
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

// Sums of what is too much, and counts of operations at which it is, over two iterations.
void Covering::find_excess(std::uint64_t goal) {
  const std::size_t count = levels_.size();
  for (std::size_t s = 0; s < 2 * count; ++s) {
    const std::size_t segment = s < count ? s : s - count;
    const std::uint64_t operations = begins_[segment + 1] - begins_[segment];
    const std::int64_t more = std::max<std::int64_t>(0, levels_[segment] - static_cast<std::int64_t>(goal));
    excess_[s + 1] = excess_[s] + static_cast<double>(more) * static_cast<double>(operations);
    above_[s + 1] = above_[s] + (more > 0 ? operations : 0);
  }
}

std::uint32_t Covering::best(std::span<const double> factors) const {
  std::uint32_t best = kNone;
  double most = 0;
  for (std::uint32_t a = 0; a < used_.size(); ++a) {
    if (used_[a] != 0) continue;
    const Range& range = away_[a];
    const std::uint32_t begin = range.begin;
    const std::uint32_t end = range.whole != 0 ? begin + static_cast<std::uint32_t>(levels_.size()) : range.end;
    if (excess_[end] == excess_[begin]) continue;
    // What has chunks of its own for it takes more all its life.
    const std::uint64_t bytes = bytes_of(candidates_.evictions[a]);
    const auto chunks = static_cast<double>(taken(bytes));
    const double most_of_it = static_cast<double>(above_[end] - above_[begin]) * chunks;
    const double part = static_cast<double>(bytes) / chunks;
    const double cost = factors.empty() ? cost_[a] : cost_[a] * factors[a];
    const double gain = part * std::min(excess_[end] - excess_[begin], most_of_it) / cost;
    if (gain <= most) continue;
    most = gain;
    best = a;
  }
  return best;
}

}  // namespace memopt::swap
