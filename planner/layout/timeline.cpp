#include "planner/layout/timeline.h"

#include <algorithm>

namespace memopt::layout {
namespace {

constexpr std::uint8_t kBegins = 1;
constexpr std::uint8_t kEnds = 2;

// Numbers the moments in order: a section is complete at the first end after a begin.
class Numbering {
 public:
  std::uint32_t at(std::uint8_t what) {
    if ((what & kEnds) != 0 && open_) {
      ++section_;
      open_ = false;
    }
    if ((what & kBegins) != 0) open_ = true;
    return section_;
  }

 private:
  std::uint32_t section_ = 0;
  bool open_ = false;
};

void number_dense(const Problem& problem, std::uint64_t first, std::uint64_t last, std::vector<Span>& spans) {
  std::vector<std::uint8_t> what(last - first + 1);
  for (const Interval& interval : problem.intervals) {
    what[interval.begin - first] |= kBegins;
    what[interval.end - first] |= kEnds;
  }
  std::vector<std::uint32_t> section(what.size());
  Numbering numbering;
  for (std::size_t i = 0; i < what.size(); ++i) section[i] = numbering.at(what[i]);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    spans[i] = {section[problem.intervals[i].begin - first], section[problem.intervals[i].end - first]};
  }
}

void number_sparse(const Problem& problem, std::vector<Span>& spans) {
  struct Moment {
    std::uint64_t time;
    std::uint32_t end;  // 0 or 1
    std::uint32_t interval;
  };
  std::vector<Moment> moments;
  moments.reserve(2 * spans.size());
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    moments.push_back({problem.intervals[i].begin, 0, i});
    moments.push_back({problem.intervals[i].end, 1, i});
  }
  // Ends before begins, since intervals are half-open.
  std::sort(moments.begin(), moments.end(),
            [](const Moment& a, const Moment& b) { return a.time != b.time ? a.time < b.time : a.end > b.end; });
  Numbering numbering;
  for (const Moment& moment : moments) {
    if (moment.end != 0) {
      spans[moment.interval].hi = numbering.at(kEnds);
    } else {
      spans[moment.interval].lo = numbering.at(kBegins);
    }
  }
}

}  // namespace

Timeline::Timeline(const Problem& problem) : spans(problem.intervals.size()), arcs(problem.buffers.size()) {
  if (problem.buffers.empty()) return;
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
  for (const Interval& interval : problem.intervals) {
    first = std::min(first, interval.begin);
    last = std::max(last, interval.end);
  }
  if (last - first < 8 * spans.size() + 64) {
    number_dense(problem, first, last, spans);
  } else {
    number_sparse(problem, spans);
  }
  for (const Span& span : spans) count = std::max(count, span.hi);

  load.assign(count + 1, 0);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    several |= buffer.count > 1;
    aligned |= buffer.alignment > 1;
    fixed |= buffer.fixed != kAnywhere;
    const auto its = of(buffer);
    for (const Span& span : its) {
      load[span.lo] += buffer.bytes;
      load[span.hi] -= buffer.bytes;
    }
    arcs[i] = {its.front().lo, its.back().hi};
    std::uint32_t gap = its.front().lo + count - its.back().hi;
    for (std::size_t k = 0; k + 1 < its.size(); ++k) {
      if (its[k + 1].lo - its[k].hi <= gap) continue;
      gap = its[k + 1].lo - its[k].hi;
      arcs[i] = {its[k + 1].lo, its[k].hi + count};
    }
    circle |= arcs[i].hi > count;
  }
  std::uint64_t sum = 0;
  for (std::uint64_t& value : load) peak = std::max(peak, value = sum += value);
  load.pop_back();
}

}  // namespace memopt::layout
