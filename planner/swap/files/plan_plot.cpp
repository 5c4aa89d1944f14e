#include "planner/swap/files/plan_plot.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "planner/swap/files/svg.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/simulation/simulator.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

constexpr double kWidth = 1600, kHeight = 1000;
constexpr double kLeft = 110, kRight = 1580, kTop = 84, kBottom = 800;
constexpr double kLaneTop = 868, kLaneHeight = 24, kLaneStep = 38;
constexpr std::size_t kMostTitles = 20000;
constexpr double kMib = 1 << 20;
// Colours of svg.h.
constexpr const char* kStays = "c1 edge";
constexpr const char* kSwapped = "c3 edge";
constexpr const char* kIn = "c2 edge";
constexpr const char* kOut = "c0 edge";

struct TimeSpan {
  double from = 0, to = 0;
};

std::string text(const char* format, double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, format, value);
  return digits;
}

class PlanDrawing {
 public:
  PlanDrawing(const Problem& problem, const Decisions& decisions)
      : problem_(problem),
        decisions_(decisions),
        liveness_(find_liveness(problem)),
        simulator_(problem_, liveness_),
        timing_(simulator_.record(decisions)),
        n_(static_cast<std::int64_t>(liveness_.operations)),
        shown_(static_cast<std::int64_t>(timing_.iterations) - 3),
        drawing_(kWidth, kHeight) {
    for (const Stall& stall : simulator_.stalls()) {
      waited_.push_back((waited_.empty() ? 0 : waited_.back()) + stall.ns);
    }
    begin_ = simulator_.iteration_end(static_cast<std::uint64_t>(shown_ - 1));
    length_ = simulator_.iteration_end(static_cast<std::uint64_t>(shown_)) - begin_;
    const std::uint64_t footprint = footprint_of(problem, decisions);
    double top = static_cast<double>(footprint) / kMib;
    if (problem.limit && *problem.limit < footprint + footprint / 4) top = static_cast<double>(*problem.limit) / kMib;
    across_ = {0, length_ > 0 ? length_ / 1e6 : 1, kLeft, kRight};
    up_ = {0, top > 0 ? top * 1.02 : 1, kBottom, kTop};
  }

  std::string draw() {
    caption();
    draw_residency();
    drawing_.axes(across_, up_, "time in a steady iteration, ms", "offset, MiB");
    levels();
    lanes();
    return drawing_.finish();
  }

 private:
  const Block& block(const Swap& swap) const { return problem_.blocks[swap.block]; }

  // Of an operation, counted over all iterations.
  TimeSpan operation(std::int64_t position) const {
    const std::int64_t k = position / n_, i = position % n_;
    const std::span<const Stall> stalls = simulator_.stalls();
    const auto next = std::partition_point(stalls.begin(), stalls.end(), [&](const Stall& stall) {
      return std::pair(static_cast<std::int64_t>(stall.iteration), static_cast<std::int64_t>(stall.operation)) <=
             std::pair(k, i);
    });
    const auto index = static_cast<std::size_t>(i);
    const double base =
        static_cast<double>(k) * problem_.period + (next == stalls.begin() ? 0 : waited_[next - stalls.begin() - 1]);
    const auto& operations = problem_.operations;
    return {base + operations[index].time,
            base + (index + 1 < operations.size() ? operations[index + 1].time : problem_.period)};
  }
  bool simulated(std::int64_t iteration) const {
    return iteration >= 0 && iteration < static_cast<std::int64_t>(timing_.iterations);
  }
  TimeSpan copy_out(std::int32_t swap, std::int64_t iteration) const {
    const auto j = static_cast<std::uint32_t>(swap);
    const double end = simulator_.out_end(j, static_cast<std::uint64_t>(iteration));
    return {decisions_.swaps[j].copy ? end - problem_.machine.out_ns(block(decisions_.swaps[j]).bytes) : end, end};
  }
  TimeSpan copy_in(std::int32_t swap, std::int64_t iteration) const {
    const auto j = static_cast<std::uint32_t>(swap), k = static_cast<std::uint32_t>(iteration);
    return {simulator_.in_begin(j, k), simulator_.in_end(j, k)};
  }

  // Pixels, cut at the ends of the iteration that is shown.
  double x(double time) const { return across_.at(std::clamp(time - begin_, 0.0, length_) / 1e6); }
  bool seen(const TimeSpan& span) const {
    return span.to > begin_ && span.from < begin_ + length_ && span.to > span.from;
  }

  std::string said(const Block& block, const char* what, const TimeSpan& span) {
    if (++titles_ > kMostTitles) return "";
    std::string result = "block " + std::to_string(block.id);
    if (!block.name.empty()) result += " (" + block.name.substr(0, 80) + ")";
    return result + ", " + std::to_string(block.bytes) + " bytes, " + what +
           text(" %.4f to", (span.from - begin_) / 1e6) + text(" %.4f ms", (span.to - begin_) / 1e6);
  }

  void phase(const Block& block, std::uint64_t offset, const TimeSpan& span, const char* style, const char* what) {
    if (!seen(span)) return;
    const double bottom = static_cast<double>(offset) / kMib, top = static_cast<double>(offset + block.bytes) / kMib;
    drawing_.rectangle(x(span.from), up_.at(top), x(span.to), up_.at(bottom), style, said(block, what, span));
  }

  void draw_residency() {
    std::vector<bool> moves(problem_.blocks.size()), drawn(problem_.blocks.size());
    for (const Swap& swap : decisions_.swaps) moves[swap.block] = true;
    for (const ResidencyInterval& it : simulator_.residency().intervals) {
      drawn[it.block] = true;
      // Instances of other iterations reach into the one that is shown, the oldest from before the first.
      for (std::int64_t born = -1; born <= shown_ + 1; ++born) draw_interval(it, born, moves[it.block]);
    }
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      if (!problem_.blocks[b].persistent || drawn[b] || problem_.blocks[b].bytes == 0) continue;
      phase(problem_.blocks[b], decisions_.places[b].offsets[0], {begin_, begin_ + length_}, kStays, "there always");
    }
  }

  void draw_interval(const ResidencyInterval& it, std::int64_t born, bool moves) {
    const std::int64_t shift = born * n_;
    const std::int64_t first = static_cast<std::int64_t>(it.first) + shift,
                       last = static_cast<std::int64_t>(it.last) + shift;
    if (last < (shown_ - 1) * n_ || first < 0) return;
    const Block& block = problem_.blocks[it.block];
    const auto& offsets = offsets_since(decisions_, it.block, it.in_swap);
    const auto turns = static_cast<std::int64_t>(offsets.size());
    const std::uint64_t offset = offsets[static_cast<std::size_t>((born % turns + turns) % turns)];
    TimeSpan here{0, begin_ + 2 * length_};
    if (it.in_swap == kNoSwap) {
      if (!simulated(first / n_)) return;
      here.from = operation(first).from;
    } else {
      const auto issued =
          static_cast<std::int64_t>(decisions_.swaps[static_cast<std::size_t>(it.in_swap)].in_after) / n_ + born;
      if (!simulated(issued)) return;
      const TimeSpan copy = copy_in(it.in_swap, issued);
      phase(block, offset, copy, kIn, "copied in");
      here.from = copy.to;
    }
    if (it.out_swap == kNoSwap) {
      if (simulated(last / n_)) here.to = operation(last).to;
    } else if (simulated(last / n_)) {
      const TimeSpan copy = copy_out(it.out_swap, last / n_);
      phase(block, offset, copy, kOut, "copied out");
      here.to = copy.from;
    }
    phase(block, offset, here, moves ? kSwapped : kStays, "there");
  }

  void caption() {
    drawing_.text(
        kLeft, 32,
        (problem_.name.empty() ? "" : problem_.name + ": ") +
            text("%.2f MiB", static_cast<double>(footprint_of(problem_, decisions_)) / kMib) +
            text(" of a peak load of %.2f MiB", static_cast<double>(liveness_.peak) / kMib) +
            text(", %.3f ms added", timing_.added_ns / 1e6) +
            text(" to an iteration of %.3f ms", problem_.period / 1e6) + ", " +
            std::to_string(decisions_.swaps.size()) + " swaps" +
            (simulator_.rounds() > 1 ? "; one of " + std::to_string(simulator_.rounds()) + " iterations that take turns"
                                     : ""),
        "font-size=\"17\"");
    double left = kLeft;
    for (const auto& [style, name] : {std::pair(kStays, "stays"), std::pair(kSwapped, "there, swapped at other times"),
                                      std::pair(kOut, "being copied out"), std::pair(kIn, "being copied in")}) {
      drawing_.rectangle(left, 48, left + 26, 64, style, "");
      drawing_.text(left + 34, 61, name);
      left += 90 + 7.5 * static_cast<double>(std::string(name).size());
    }
  }

  void levels() {
    const auto level = [&](std::uint64_t bytes, const char* name, const char* style) {
      const double y = up_.at(static_cast<double>(bytes) / kMib);
      drawing_.line(kLeft, y, kRight, y, style);
      drawing_.text(kRight, y - 4, name + text(" %.2f MiB", static_cast<double>(bytes) / kMib), "text-anchor=\"end\"");
    };
    const std::uint64_t footprint = footprint_of(problem_, decisions_);
    level(footprint, "footprint", "line");
    // Not where it would be drawn over the other.
    if (problem_.limit && *problem_.limit < footprint + footprint / 4 && *problem_.limit > footprint + footprint / 50) {
      level(*problem_.limit, "limit", "line dashed");
    }
  }

  void lanes() {
    const auto lane = [](int index) { return kLaneTop + index * kLaneStep; };
    const auto bar = [&](int index, const TimeSpan& span, const char* style, const std::string& title) {
      drawing_.rectangle(x(span.from), lane(index), x(span.to), lane(index) + kLaneHeight, style, title);
    };
    int index = 0;
    for (const char* const name : {"out", "in", "waits"}) {
      drawing_.text(kLeft - 10, lane(index) + kLaneHeight * 0.7, name, "text-anchor=\"end\"");
      drawing_.line(kLeft, lane(index) + kLaneHeight, kRight, lane(index) + kLaneHeight, "faint");
      ++index;
    }
    for (std::size_t j = 0; j < decisions_.swaps.size(); ++j) {
      const Swap& swap = decisions_.swaps[j];
      const auto copy = static_cast<std::int32_t>(j);
      for (std::int64_t k = 0; simulated(k); ++k) {
        if (const TimeSpan out = copy_out(copy, k); swap.copy && seen(out))
          bar(0, out, kOut, said(block(swap), "copied out", out));
        if (!swap.returns()) continue;
        if (const TimeSpan in = copy_in(copy, k); seen(in)) bar(1, in, kIn, said(block(swap), "copied in", in));
      }
    }
    for (const Stall& stall : simulator_.stalls()) {
      if (static_cast<std::int64_t>(stall.iteration) != shown_) continue;
      const double end = operation(shown_ * n_ + static_cast<std::int64_t>(stall.operation)).from;
      bar(2, {end - stall.ns, end}, "ink",
          "operation " + std::to_string(stall.operation) + text(" waits %.4f ms", stall.ns / 1e6));
    }
  }

  const Problem& problem_;
  const Decisions& decisions_;
  Liveness liveness_;
  Simulator simulator_;
  Timing timing_;
  std::int64_t n_;
  std::int64_t shown_;  // the iteration
  double begin_ = 0, length_ = 0;
  std::vector<double> waited_;  // by stall: all up to it
  Axis across_, up_;
  Drawing drawing_;
  std::size_t titles_ = 0;
};

}  // namespace

std::string draw_plan(const Problem& problem, const Decisions& decisions) {
  return PlanDrawing(problem, decisions).draw();
}

}  // namespace memopt::swap
