#include "planner/swap/search/greedy.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace memopt::swap {
namespace {

constexpr std::size_t kPart = 16;  // of those in use: so many are added at once

class Greedy {
 public:
  Greedy(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates)
      : problem_(problem),
        liveness_(liveness),
        candidates_(candidates),
        evaluator_(problem, liveness, candidates, Evaluator::Places::kNone),
        refused_(candidates.evictions.size()) {}

  Choice run(const Choice& start, const std::function<bool()>& ends) {
    Choice now = start;
    Evaluator::Prices prices;
    prices.above_goal = 0;
    evaluator_.set(prices);
    double cost = evaluator_.attempt(now, Evaluator::kInfinite);
    if (cost == Evaluator::kInfinite) return start;
    evaluator_.keep();
    find_ranges();
    std::size_t most = 1;
    while (!ends || !ends()) {
      const std::vector<std::uint32_t> chosen = best(now, most);
      if (chosen.empty()) return now;
      Choice trial = now;
      for (const std::uint32_t a : chosen) trial.evicted[a] = 1;
      const double its = evaluator_.attempt(trial, cost);
      if (its < cost) {
        evaluator_.keep();
        cost = its;
        // What had no time for its copies will have less later.
        for (const std::uint32_t a : chosen) refused_[a] = trial.evicted[a] == 0;
        now = std::move(trial);
        most = std::max<std::size_t>(2 * most, 1);
        most = std::min(most, 1 + evaluator_.times().used().size() / kPart);
      } else if (chosen.size() == 1) {
        refused_[chosen.front()] = 1;
      } else {
        most = chosen.size() / 4;
        most = std::max<std::size_t>(most, 1);
      }
    }
    return now;
  }

 private:
  struct BinRange {
    std::size_t begin = 0, end = 0;  // bins, on a line of two iterations
    double cost = 0;                 // nanoseconds of the engines
  };

  // When each would be away if its copies had the engines for themselves.
  void find_ranges() {
    const Clock& clock = evaluator_.clock();
    const auto bins = static_cast<double>(evaluator_.load().size() - 1);
    const double scale = bins / static_cast<double>(point_of(liveness_.operations));
    for (const Eviction& eviction : candidates_.evictions) {
      const std::uint32_t block = candidates_.items[eviction.item].block;
      const std::uint64_t bytes = problem_.blocks[block].bytes;
      const double out = problem_.machine.out_ns(bytes);
      const double in = eviction.returns() ? problem_.machine.in_ns(bytes) : 0;
      BinRange range;
      range.cost = out + in;
      const Point from = clock.not_before(clock.end(eviction.leaves) + out);
      const Point to = eviction.returns() ? clock.not_after(clock.begin(eviction.needed) - in)
                                          : point_of(liveness_.of[block].freed + 1);
      if (eviction.short_ns <= 0 && from < to) {
        const Point circle = point_of(liveness_.operations);
        const Point begin = from % circle;
        const Point end = begin + std::min(to - from, circle);
        range.begin = static_cast<std::size_t>(static_cast<double>(begin) * scale) + 1;
        range.end = static_cast<std::size_t>(static_cast<double>(end) * scale);
      }
      ranges_.push_back(range);
    }
  }

  // At most so many that are not used yet, the best first.
  std::vector<std::uint32_t> best(const Choice& now, std::size_t most) {
    const auto& changes = evaluator_.load();
    const std::size_t bins = changes.size() - 1;
    std::vector<double> sum(2 * bins + 1);
    std::int64_t load = 0;
    const double unit = 1 / (static_cast<double>(liveness_.peak) + 1);
    std::vector<double> weight(bins);
    for (std::size_t k = 0; k < bins; ++k) {
      load += changes[k];
      const double x = static_cast<double>(load) * unit, x2 = x * x, x4 = x2 * x2;
      weight[k] = x4 * x2 * x;
    }
    for (std::size_t k = 0; k < 2 * bins; ++k) sum[k + 1] = sum[k] + weight[k % bins];
    std::vector<std::pair<double, std::uint32_t>> all;
    for (std::uint32_t a = 0; a < ranges_.size(); ++a) {
      const BinRange& range = ranges_[a];
      if (now.evicted[a] != 0 || refused_[a] != 0 || range.begin >= range.end) continue;
      const auto bytes =
          static_cast<double>(problem_.blocks[candidates_.items[candidates_.evictions[a].item].block].bytes);
      const double gain = bytes * (sum[range.end] - sum[range.begin]) / range.cost;
      if (gain > 0) all.emplace_back(-gain, a);
    }
    const std::size_t count = std::min(most, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
    std::vector<std::uint32_t> result;
    for (std::size_t k = 0; k < count; ++k) result.push_back(all[k].second);
    return result;
  }

  const Problem& problem_;
  const Liveness& liveness_;
  const EvictionCandidates& candidates_;
  Evaluator evaluator_;
  std::vector<std::uint8_t> refused_;  // by eviction
  std::vector<BinRange> ranges_;       // by eviction
};

}  // namespace

Choice greedy(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
              const Choice& start, const std::function<bool()>& ends) {
  return Greedy(problem, liveness, candidates).run(start, ends);
}

}  // namespace memopt::swap
