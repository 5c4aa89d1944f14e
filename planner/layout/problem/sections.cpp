#include "planner/layout/problem/sections.h"

#include <algorithm>

namespace memopt::layout {
namespace {

constexpr std::uint8_t kBegins = 1;
constexpr std::uint8_t kEnds = 2;

// Numbers the sections, given the events in order: a section is complete at the first end after a begin.
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

void number_dense(const Problem& problem, std::uint64_t first, std::uint64_t last, std::vector<SectionRange>& ranges) {
  std::vector<std::uint8_t> what(last - first + 1);
  for (const Interval& interval : problem.intervals) {
    what[interval.begin - first] |= kBegins;
    what[interval.end - first] |= kEnds;
  }
  std::vector<std::uint32_t> section(what.size());
  Numbering numbering;
  for (std::size_t i = 0; i < what.size(); ++i) section[i] = numbering.at(what[i]);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = {section[problem.intervals[i].begin - first], section[problem.intervals[i].end - first]};
  }
}

void number_sparse(const Problem& problem, std::vector<SectionRange>& ranges) {
  struct Event {
    std::uint64_t time;
    std::uint32_t end;  // 0 or 1
    std::uint32_t interval;
  };
  std::vector<Event> events;
  events.reserve(2 * ranges.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) {
    events.push_back({problem.intervals[i].begin, 0, i});
    events.push_back({problem.intervals[i].end, 1, i});
  }
  // Ends before begins, since intervals are half-open.
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.end > b.end; });
  Numbering numbering;
  for (const Event& event : events) {
    if (event.end != 0) {
      ranges[event.interval].hi = numbering.at(kEnds);
    } else {
      ranges[event.interval].lo = numbering.at(kBegins);
    }
  }
}

}  // namespace

Sections::Sections(const Problem& problem) : ranges(problem.intervals.size()), arcs(problem.buffers.size()) {
  if (problem.buffers.empty()) return;
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
  for (const Interval& interval : problem.intervals) {
    first = std::min(first, interval.begin);
    last = std::max(last, interval.end);
  }
  if (last - first < 8 * ranges.size() + 64) {
    number_dense(problem, first, last, ranges);
  } else {
    number_sparse(problem, ranges);
  }
  for (const SectionRange& range : ranges) count = std::max(count, range.hi);

  load.assign(count + 1, 0);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    several |= buffer.count > 1;
    aligned |= buffer.alignment > 1;
    fixed |= buffer.fixed != kAnywhere;
    const auto its = of(buffer);
    for (const SectionRange& range : its) {
      load[range.lo] += buffer.bytes;
      load[range.hi] -= buffer.bytes;
    }
    arcs[i] = {its.front().lo, its.back().hi};
    std::uint32_t gap = its.front().lo + count - its.back().hi;
    for (std::size_t k = 0; k + 1 < its.size(); ++k) {
      if (its[k + 1].lo - its[k].hi <= gap) continue;
      gap = its[k + 1].lo - its[k].hi;
      arcs[i] = {its[k + 1].lo, its[k].hi + count};
    }
    circular |= arcs[i].hi > count;
  }
  std::uint64_t sum = 0;
  for (std::uint64_t& value : load) peak = std::max(peak, value = sum += value);
  load.pop_back();
}

}  // namespace memopt::layout
