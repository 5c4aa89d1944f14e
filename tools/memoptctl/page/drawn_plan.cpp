#include "tools/memoptctl/page/drawn_plan.h"

#include <algorithm>
#include <cstddef>

#include "planner/swap/simulation/recorded_clock.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::tools {
namespace {

// Iterations behind the one that is drawn, whose copies may reach back into it.
constexpr std::int64_t kBehind = 3;

class Drawing {
 public:
  Drawing(const swap::Problem& problem, const swap::Liveness& liveness, const swap::Decisions& decisions)
      : problem_(problem),
        decisions_(decisions),
        simulator_(problem, liveness),
        timing_(simulator_.record(decisions)),
        clock_(problem, simulator_, timing_.iterations),
        n_(static_cast<std::int64_t>(liveness.operations)),
        shown_(std::max<std::int64_t>(static_cast<std::int64_t>(timing_.iterations) - kBehind, 0)) {
    begin_ = shown_ > 0 ? simulator_.iteration_end(static_cast<std::uint64_t>(shown_ - 1)) : 0;
    plan_.length = simulator_.iteration_end(static_cast<std::uint64_t>(shown_)) - begin_;
    plan_.rounds = simulator_.rounds();
  }

  DrawnPlan finish() {
    std::vector<bool> drawn(problem_.blocks.size());
    for (const swap::ResidencyInterval& it : simulator_.residency().intervals) {
      drawn[it.block] = true;
      // Instances of other iterations reach into this one, the oldest from before the first.
      for (std::int64_t born = std::max<std::int64_t>(shown_ - kOldest, -1); born <= shown_ + 1; ++born) {
        add_interval(it, born);
      }
    }
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      if (!problem_.blocks[b].persistent || drawn[b] || problem_.blocks[b].bytes == 0) continue;
      add_block(b, Phase::kThere, decisions_.places[b].offsets[0], begin_, begin_ + plan_.length);
    }
    add_copies();
    add_waits();
    return std::move(plan_);
  }

 private:
  static constexpr std::int64_t kOldest = 16;  // a block lives for 7 iterations at most

  struct TimeSpan {
    double from, to;
  };

  bool simulated(std::int64_t iteration) const {
    return iteration >= 0 && iteration < static_cast<std::int64_t>(timing_.iterations);
  }
  TimeSpan copy_out(std::int32_t swap, std::int64_t iteration) const {
    const auto j = static_cast<std::uint32_t>(swap);
    const double end = simulator_.out_end(j, static_cast<std::uint64_t>(iteration));
    const swap::Swap& one = decisions_.swaps[j];
    return {one.copy ? end - problem_.machine.out_ns(problem_.blocks[one.block].bytes) : end, end};
  }
  TimeSpan copy_in(std::int32_t swap, std::int64_t iteration) const {
    const auto j = static_cast<std::uint32_t>(swap);
    const auto k = static_cast<std::uint64_t>(iteration);
    return {simulator_.in_begin(j, k), simulator_.in_end(j, k)};
  }

  // Cut at the ends of the iteration; false: nothing is left.
  bool cut(TimeSpan& span) const {
    span = {std::clamp(span.from - begin_, 0.0, plan_.length), std::clamp(span.to - begin_, 0.0, plan_.length)};
    return span.to > span.from;
  }

  void add_block(std::uint32_t block, Phase phase, std::uint64_t offset, double from, double to) {
    TimeSpan span{from, to};
    if (cut(span)) plan_.blocks.push_back({block, phase, offset, span.from, span.to});
  }

  void add_interval(const swap::ResidencyInterval& it, std::int64_t born) {
    const std::int64_t first = static_cast<std::int64_t>(it.first) + born * n_;
    const std::int64_t last = static_cast<std::int64_t>(it.last) + born * n_;
    if (first < 0 || last < (shown_ - 1) * n_) return;
    const auto& offsets = swap::offsets_since(decisions_, it.block, it.in_swap);
    const auto turns = static_cast<std::int64_t>(offsets.size());
    const std::uint64_t offset = offsets[static_cast<std::size_t>((born % turns + turns) % turns)];
    TimeSpan here{0, begin_ + 2 * plan_.length};
    if (it.in_swap == swap::kNoSwap) {
      if (!clock_.has(first)) return;
      here.from = clock_.begin(first);
    } else {
      const std::uint64_t in_after = decisions_.swaps[static_cast<std::size_t>(it.in_swap)].in_after;
      const std::int64_t issued = static_cast<std::int64_t>(in_after) / n_ + born;
      if (!simulated(issued)) return;
      const TimeSpan copy = copy_in(it.in_swap, issued);
      add_block(it.block, Phase::kCopiedIn, offset, copy.from, copy.to);
      here.from = copy.to;
    }
    if (it.out_swap == swap::kNoSwap) {
      if (clock_.has(last)) here.to = clock_.end(last);
    } else if (simulated(last / n_)) {
      const TimeSpan copy = copy_out(it.out_swap, last / n_);
      add_block(it.block, Phase::kCopiedOut, offset, copy.from, copy.to);
      here.to = copy.from;
    }
    add_block(it.block, Phase::kThere, offset, here.from, here.to);
  }

  void add_copies() {
    const auto add = [&](std::uint32_t block, bool in, TimeSpan span) {
      if (cut(span)) plan_.copies.push_back({block, in, span.from, span.to});
    };
    for (std::size_t j = 0; j < decisions_.swaps.size(); ++j) {
      const swap::Swap& swap = decisions_.swaps[j];
      for (std::int64_t k = std::max<std::int64_t>(shown_ - kOldest, 0); simulated(k); ++k) {
        if (swap.copy) add(swap.block, false, copy_out(static_cast<std::int32_t>(j), k));
        if (swap.returns()) add(swap.block, true, copy_in(static_cast<std::int32_t>(j), k));
      }
    }
    std::sort(plan_.copies.begin(), plan_.copies.end(),
              [](const DrawnCopy& a, const DrawnCopy& b) { return a.from < b.from; });
  }

  void add_waits() {
    for (const swap::Stall& stall : simulator_.stalls()) {
      if (static_cast<std::int64_t>(stall.iteration) != shown_ || stall.ns <= 0) continue;
      const double end = clock_.begin(shown_ * n_ + static_cast<std::int64_t>(stall.operation)) - begin_;
      plan_.waits.push_back({problem_.operations[stall.operation].time, end - stall.ns, end});
    }
  }

  const swap::Problem& problem_;
  const swap::Decisions& decisions_;
  swap::Simulator simulator_;
  swap::Timing timing_;
  swap::RecordedClock clock_;
  std::int64_t n_;
  std::int64_t shown_;  // the iteration
  double begin_ = 0;
  DrawnPlan plan_;
};

}  // namespace

DrawnPlan draw(const swap::Problem& problem, const swap::Liveness& liveness, const swap::Decisions& decisions) {
  return Drawing(problem, liveness, decisions).finish();
}

}  // namespace memopt::tools
