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
  Greedy(const Problem& problem, const Lives& lives, const Candidates& candidates)
      : problem_(problem),
        lives_(lives),
        candidates_(candidates),
        fitting_(problem, lives, candidates, Fitting::Places::kNone),
        refused_(candidates.absences.size()) {}

  Choice run(const Choice& start, const std::atomic<bool>* cancelled) {
    Choice now = start;
    Fitting::Prices prices;
    prices.above_goal = 0;
    fitting_.set(prices);
    double cost = fitting_.attempt(now, Fitting::kInfinite);
    if (cost == Fitting::kInfinite) return start;
    fitting_.keep();
    find_spans();
    std::size_t most = 1;
    while (cancelled == nullptr || !cancelled->load(std::memory_order_relaxed)) {
      const std::vector<std::uint32_t> chosen = best(now, most);
      if (chosen.empty()) return now;
      Choice trial = now;
      for (const std::uint32_t a : chosen) trial.away[a] = 1;
      const double its = fitting_.attempt(trial, cost);
      if (its < cost) {
        fitting_.keep();
        cost = its;
        // What had no time for its copies will have less later.
        for (const std::uint32_t a : chosen) refused_[a] = trial.away[a] == 0;
        now = std::move(trial);
        most = std::max<std::size_t>(2 * most, 1);
        most = std::min(most, 1 + fitting_.times().used().size() / kPart);
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
  struct Span {
    std::size_t begin = 0, end = 0;  // bins, on a line of two iterations
    double cost = 0;                 // nanoseconds of the engines
  };

  // When each would be away if its copies had the engines for themselves.
  void find_spans() {
    const Clock& clock = fitting_.clock();
    const auto bins = static_cast<double>(fitting_.load().size() - 1);
    const double scale = bins / static_cast<double>(point_of(lives_.operations));
    for (const Absence& absence : candidates_.absences) {
      const std::uint32_t block = candidates_.items[absence.item].block;
      const std::uint64_t bytes = problem_.blocks[block].bytes;
      const double out = problem_.machine.out_ns(bytes);
      const double in = absence.returns() ? problem_.machine.in_ns(bytes) : 0;
      Span span;
      span.cost = out + in;
      const Point from = clock.not_before(clock.end(absence.leaves) + out);
      const Point to =
          absence.returns() ? clock.not_after(clock.begin(absence.needed) - in) : point_of(lives_.of[block].freed + 1);
      if (absence.short_ns <= 0 && from < to) {
        const Point circle = point_of(lives_.operations);
        const Point begin = from % circle;
        const Point end = begin + std::min(to - from, circle);
        span.begin = static_cast<std::size_t>(static_cast<double>(begin) * scale) + 1;
        span.end = static_cast<std::size_t>(static_cast<double>(end) * scale);
      }
      spans_.push_back(span);
    }
  }

  // At most so many that are not used yet, the best first.
  std::vector<std::uint32_t> best(const Choice& now, std::size_t most) {
    const auto& changes = fitting_.load();
    const std::size_t bins = changes.size() - 1;
    std::vector<double> sum(2 * bins + 1);
    std::int64_t load = 0;
    const double unit = 1 / (static_cast<double>(lives_.peak) + 1);
    std::vector<double> weight(bins);
    for (std::size_t k = 0; k < bins; ++k) {
      load += changes[k];
      const double x = static_cast<double>(load) * unit, x2 = x * x, x4 = x2 * x2;
      weight[k] = x4 * x2 * x;
    }
    for (std::size_t k = 0; k < 2 * bins; ++k) sum[k + 1] = sum[k] + weight[k % bins];
    std::vector<std::pair<double, std::uint32_t>> all;
    for (std::uint32_t a = 0; a < spans_.size(); ++a) {
      const Span& span = spans_[a];
      if (now.away[a] != 0 || refused_[a] != 0 || span.begin >= span.end) continue;
      const auto bytes =
          static_cast<double>(problem_.blocks[candidates_.items[candidates_.absences[a].item].block].bytes);
      const double gain = bytes * (sum[span.end] - sum[span.begin]) / span.cost;
      if (gain > 0) all.emplace_back(-gain, a);
    }
    const std::size_t count = std::min(most, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
    std::vector<std::uint32_t> result;
    for (std::size_t k = 0; k < count; ++k) result.push_back(all[k].second);
    return result;
  }

  const Problem& problem_;
  const Lives& lives_;
  const Candidates& candidates_;
  Fitting fitting_;
  std::vector<std::uint8_t> refused_;  // by absence
  std::vector<Span> spans_;            // by absence
};

}  // namespace

Choice greedy(const Problem& problem, const Lives& lives, const Candidates& candidates, const Choice& start,
              const std::atomic<bool>* cancelled) {
  return Greedy(problem, lives, candidates).run(start, cancelled);
}

}  // namespace memopt::swap
