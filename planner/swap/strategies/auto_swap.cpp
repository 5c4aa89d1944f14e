#include "planner/swap/strategies/auto_swap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/model/load.h"
#include "planner/swap/places/layout_problem.h"
#include "planner/swap/simulation/clock.h"
#include "planner/swap/simulation/simulator.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;

// What swaps leave, copies in under way included.
std::uint64_t peak_with(const Problem& problem, const Liveness& liveness, std::span<const Swap> swaps) {
  Load load = live_load(problem, liveness);
  for (const Swap& swap : swaps) {
    const auto bytes = static_cast<std::int64_t>(problem.blocks[swap.block].bytes);
    load.add(swap.out_after + 1, swap.returns() ? swap.in_after + 1 : liveness.of[swap.block].freed + 1, -bytes);
  }
  return load.peak();
}

std::vector<Gap> candidates(const Problem& problem, const Liveness& liveness) {
  const std::uint64_t n = liveness.operations;
  Load load = live_load(problem, liveness);
  const auto& levels = load.levels();
  const auto peak = static_cast<std::uint64_t>(std::max_element(levels.begin(), levels.end()) - levels.begin());
  std::vector<Gap> gaps;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    if (problem.blocks[b].pinned || problem.blocks[b].bytes < kLeastBytes) continue;
    const auto accesses = liveness.accesses_of(b);
    for (std::size_t k = 0; k + 1 < accesses.size(); ++k) {
      const std::uint64_t out = accesses[k].position, need = accesses[k + 1].position;
      const std::uint64_t across = out + 1 + (peak + n - (out + 1) % n) % n;  // the first peak behind `out`
      if (across < need) gaps.push_back({b, out, need});
    }
  }
  return gaps;
}

// The highest values first.
std::vector<Gap> by_value(const std::vector<Gap>& gaps, const std::vector<double>& values) {
  std::vector<std::pair<double, std::size_t>> order(gaps.size());
  for (std::size_t k = 0; k < gaps.size(); ++k) order[k] = {-values[k], k};
  std::sort(order.begin(), order.end());
  std::vector<Gap> ranked;
  for (const auto& [value, k] : order) ranked.push_back(gaps[k]);
  return ranked;
}

class Ranking {
 public:
  Ranking(const Problem& problem, const Liveness& liveness)
      : problem_(problem), liveness_(liveness), clock_(problem), load_(live_load(problem, liveness)) {}

  std::vector<Gap> by(Score score) {
    std::vector<Gap> gaps = candidates(problem_, liveness_);
    std::vector<double> values;
    if (score == Score::kSwdoa) {
      one_by_one(gaps, values);
      return gaps;
    }
    for (const Gap& gap : gaps) values.push_back(value_of(gap, score));
    return by_value(gaps, values);
  }

  Scored all() {
    Scored scored{candidates(problem_, liveness_), {}};
    for (const Score score : kScores) {
      if (score == Score::kSwdoa) continue;
      for (const Gap& gap : scored.gaps) scored.scores[static_cast<std::size_t>(score)].push_back(value_of(gap, score));
    }
    std::vector<Gap> chosen = scored.gaps;
    std::vector<double> values;
    one_by_one(chosen, values);
    auto& swdoa = scored.scores[static_cast<std::size_t>(Score::kSwdoa)];
    for (const Gap& gap : scored.gaps) {
      swdoa.push_back(values[static_cast<std::size_t>(std::find(chosen.begin(), chosen.end(), gap) - chosen.begin())]);
    }
    return scored;
  }

 private:
  std::uint64_t bytes(const Gap& gap) const { return problem_.blocks[gap.block].bytes; }

  double absence(const Gap& gap) const {
    return clock_.begin(gap.need) - clock_.end(gap.out_after) - problem_.machine.out_ns(bytes(gap)) -
           problem_.machine.in_ns(bytes(gap));
  }
  double area(const Gap& gap) const {
    const double duration = absence(gap), size = static_cast<double>(bytes(gap));
    return duration >= 0 ? duration * size : duration / size;
  }
  double value_of(const Gap& gap, Score score) {
    if (score == Score::kDoa) return absence(gap);
    return score == Score::kAoa ? area(gap) : weight(gap);
  }
  double weight(const Gap& gap) {
    const auto& levels = load_.levels();
    double sum = 0;
    for (std::uint64_t p = gap.out_after + 1; p < gap.need; ++p) {
      sum += (clock_.end(p) - clock_.begin(p)) * static_cast<double>(levels[p % liveness_.operations]);
    }
    return sum;
  }

  // Puts the gaps in order of choice, with the values at which they were chosen.
  void one_by_one(std::vector<Gap>& gaps, std::vector<double>& values) {
    std::vector<Gap> ranked;
    while (!gaps.empty()) {
      std::size_t best = 0;
      double most = -1;
      for (std::size_t k = 0; k < gaps.size(); ++k) {
        if (const double value = weight(gaps[k]); value > most) {
          most = value;
          best = k;
        }
      }
      const Gap chosen = gaps[best];
      gaps.erase(gaps.begin() + static_cast<std::ptrdiff_t>(best));
      load_.add(chosen.out_after + 1, chosen.need, -static_cast<std::int64_t>(bytes(chosen)));
      ranked.push_back(chosen);
      values.push_back(most);
    }
    gaps = std::move(ranked);
  }

  const Problem& problem_;
  const Liveness& liveness_;
  Clock clock_;
  Load load_;
};

// Delays copies in, those needed first being served first, until all bytes fit at every operation; false if even the
// latest issue does not help.
bool fit_load(const Problem& problem, const Liveness& liveness, std::uint64_t limit, std::vector<Swap>& swaps) {
  const std::uint64_t n = liveness.operations;
  std::vector<std::uint64_t> wished(swaps.size());
  std::vector<std::size_t> order;
  for (std::size_t j = 0; j < swaps.size(); ++j) {
    if (!swaps[j].returns()) continue;
    wished[j] = swaps[j].in_after;
    swaps[j].in_after = swaps[j].need - 1;
    order.push_back(j);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return swaps[a].need % n != swaps[b].need % n ? swaps[a].need % n < swaps[b].need % n : a < b;
  });
  Load load = live_load(problem, liveness);
  for (const Swap& swap : swaps) {
    const auto bytes = static_cast<std::int64_t>(problem.blocks[swap.block].bytes);
    load.add(swap.out_after + 1, swap.returns() ? swap.need : liveness.of[swap.block].freed + 1, -bytes);
  }
  if (load.peak() > limit) return false;
  for (const std::size_t j : order) {
    const std::uint64_t bytes = problem.blocks[swaps[j].block].bytes;
    const auto& levels = load.levels();
    std::uint64_t in_after = swaps[j].need - 1;
    while (in_after > wished[j] && static_cast<std::uint64_t>(levels[in_after % n]) + bytes <= limit) --in_after;
    swaps[j].in_after = in_after;
    load.add(in_after + 1, swaps[j].need, static_cast<std::int64_t>(bytes));
  }
  return true;
}

// Tries prefixes of a ranking, the shortest first.
class Selection {
 public:
  Selection(const Problem& problem, const Liveness& liveness, std::vector<Gap> ranked, const layout::Limits& limits)
      : problem_(problem),
        liveness_(liveness),
        ranked_(std::move(ranked)),
        limits_(limits),
        simulator_(problem, liveness) {}

  AutoSwapPlan run() {
    best_.candidates = ranked_.size();
    for (std::size_t chosen = 0; chosen <= ranked_.size() && !done() && !is_cancelled(); ++chosen) {
      std::vector<Swap> swaps = schedule(problem_, liveness_, std::span(ranked_).first(chosen));
      if (problem_.layout) {
        placed(std::move(swaps), chosen);
      } else {
        unplaced(std::move(swaps), chosen);
      }
    }
    return std::move(best_);
  }

 private:
  std::uint64_t limit() const { return problem_.limit.value_or(kNever); }

  // What was found until then counts.
  bool is_cancelled() const {
    return limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed);
  }

  // Without a limit all prefixes are looked at.
  bool done() const { return problem_.limit && best_.feasible; }

  void offer(Decisions&& decisions, std::uint64_t footprint, std::size_t chosen) {
    if (best_.footprint != 0 && footprint >= best_.footprint) return;
    if (!problem_.limit) {
      const Timing timing = simulator_.evaluate(decisions);
      if (timing.fault != Fault::kNone || timing.added_ns > kUnnoticed * problem_.period) return;
    }
    best_.decisions = std::move(decisions);
    best_.footprint = footprint;
    best_.chosen = chosen;
    best_.feasible = footprint <= limit();
  }

  void unplaced(std::vector<Swap> swaps, std::size_t chosen) {
    std::vector<Swap> latest = swaps;
    for (Swap& swap : latest) swap.in_after = swap.need - 1;
    const std::uint64_t least = peak_with(problem_, liveness_, latest);
    if (least > limit()) return offer({std::move(latest), {}}, least, chosen);
    fit_load(problem_, liveness_, limit(), swaps);
    const std::uint64_t peak = peak_with(problem_, liveness_, swaps);
    offer({std::move(swaps), {}}, peak, chosen);
  }

  // Room for copies in that begin in time is asked for first. Where that is too much, they begin as soon as their bytes
  // are given up.
  void placed(std::vector<Swap> swaps, std::size_t chosen) {
    std::vector<Swap> latest = swaps;
    for (Swap& swap : latest) swap.in_after = swap.need - 1;
    if (problem_.limit && peak_with(problem_, liveness_, latest) > limit() && chosen != ranked_.size()) return;
    if (place(swaps, swaps, chosen)) return;
    std::vector<Swap> fitted = swaps;
    if (fit_load(problem_, liveness_, limit(), fitted) && fitted != swaps && place(fitted, swaps, chosen)) return;
    place(latest, swaps, chosen);
  }

  // Lays out `room`; then each swap is issued as `wished`, or as soon as it may be.
  bool place(const std::vector<Swap>& room, const std::vector<Swap>& wished, std::size_t chosen) {
    Decisions decisions{room, {}};
    const LayoutProblem layout = make_layout_problem(problem_, liveness_, decisions);
    const layout::Outcome outcome = layout::solve(layout.problem, limits_);
    if (!outcome.found(layout.problem.buffers.size())) return false;
    set_places(problem_, layout, outcome.solution, decisions);
    if (!simulator_.issue_at_once(decisions)) return false;
    for (std::size_t j = 0; j < wished.size(); ++j) {
      decisions.swaps[j].in_after = std::max(decisions.swaps[j].in_after, wished[j].in_after);
    }
    const std::uint64_t footprint = footprint_of(problem_, decisions);
    offer(std::move(decisions), footprint, chosen);
    return footprint <= limit();
  }

  const Problem& problem_;
  const Liveness& liveness_;
  std::vector<Gap> ranked_;
  layout::Limits limits_;
  Simulator simulator_;
  AutoSwapPlan best_;
};

}  // namespace

std::string_view name_of(Score score) {
  constexpr std::string_view kNames[] = {"doa", "aoa", "wdoa", "swdoa"};
  return kNames[static_cast<std::size_t>(score)];
}

std::vector<Gap> rank_candidates(const Problem& problem, const Liveness& liveness, Score score) {
  return Ranking(problem, liveness).by(score);
}

Scored score_candidates(const Problem& problem, const Liveness& liveness) { return Ranking(problem, liveness).all(); }

std::vector<Gap> rank(const Scored& scored, const Weights& weights) {
  std::vector<double> sums(scored.gaps.size(), 0.0);
  const auto count = static_cast<double>(sums.size());
  for (std::size_t s = 0; s < weights.size(); ++s) {
    double mean = 0, variance = 0;
    for (const double value : scored.scores[s]) mean += value / count;
    for (const double value : scored.scores[s]) variance += (value - mean) * (value - mean) / count;
    if (!(variance > 0)) continue;
    const double factor = weights[s] / std::sqrt(variance);
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += factor * (scored.scores[s][k] - mean);
  }
  return by_value(scored.gaps, sums);
}

std::vector<Swap> schedule(const Problem& problem, const Liveness& liveness, std::span<const Gap> gaps) {
  const Clock clock(problem);
  const std::uint64_t n = liveness.operations;
  std::vector<Swap> swaps;
  for (const Gap& gap : gaps) swaps.push_back({gap.block, gap.out_after, gap.need - 1, gap.need, true});
  std::vector<std::size_t> order(swaps.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return swaps[a].need % n != swaps[b].need % n ? swaps[a].need % n > swaps[b].need % n : a < b;
  });
  // Backwards through the iteration: each ends when it is needed, or when the next has to begin.
  double next = clock.begin(n);
  for (const std::size_t j : order) {
    Swap& swap = swaps[j];
    const double laps = static_cast<double>(swap.need / n) * problem.period;
    next = std::min(next, clock.begin(swap.need % n)) - problem.machine.in_ns(problem.blocks[swap.block].bytes);
    swap.in_after = clock.last_ended(next + laps, swap.out_after, swap.need);
  }
  // Of those issued after the same operation, what is needed first goes first.
  std::vector<Swap> sorted;
  for (auto it = order.rbegin(); it != order.rend(); ++it) sorted.push_back(swaps[*it]);
  return sorted;
}

AutoSwapPlan auto_swap(const Problem& problem, const Liveness& liveness, Score score, const layout::Limits& limits) {
  return auto_swap(problem, liveness, rank_candidates(problem, liveness, score), limits);
}

AutoSwapPlan auto_swap(const Problem& problem, const Liveness& liveness, std::vector<Gap> ranked,
                       const layout::Limits& limits) {
  return Selection(problem, liveness, std::move(ranked), limits).run();
}

}  // namespace memopt::swap
