#include "planner/layout/published/online_best_fit.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/layout/problem/validation.h"
#include "planner/layout/published/free_ranges.h"

namespace memopt::layout {
namespace {

// A buffer's begin or end, to be sorted.
struct Moment {
  std::uint64_t time;
  std::uint64_t bytes;
  std::uint32_t buffer;
};

std::vector<std::uint64_t> offsets_of(const Problem& problem) {
  const std::size_t count = problem.buffers.size();
  std::vector<std::uint64_t> offsets(count);
  std::vector<std::uint32_t> fixed;
  std::vector<Moment> begins, ends;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed != kAnywhere) {
      fixed.push_back(i);
      continue;
    }
    const Interval hull = problem.hull(i);
    begins.push_back({hull.begin, buffer.bytes, i});
    ends.push_back({hull.end, buffer.bytes, i});
  }

  FreeRanges free(begins.size());
  std::sort(fixed.begin(), fixed.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(problem.buffers[a].fixed, a) < std::pair(problem.buffers[b].fixed, b);
  });
  for (const std::uint32_t i : fixed) {
    offsets[i] = problem.buffers[i].fixed;
    free.reserve(offsets[i], offsets[i] + problem.buffers[i].bytes);
  }

  std::sort(begins.begin(), begins.end(), [](const Moment& a, const Moment& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
  });
  std::sort(ends.begin(), ends.end(),
            [](const Moment& a, const Moment& b) { return std::pair(a.time, a.buffer) < std::pair(b.time, b.buffer); });
  std::vector<FreeRanges::Range> ranges(count);
  auto ended = ends.begin();
  for (const Moment& begin : begins) {
    // All that end until then have begun before.
    for (; ended->time <= begin.time; ++ended) free.give(ranges[ended->buffer]);
    const Buffer& buffer = problem.buffers[begin.buffer];
    ranges[begin.buffer] = free.take(buffer.bytes, buffer.alignment);
    offsets[begin.buffer] = free.begin_of(ranges[begin.buffer]);
  }
  return offsets;
}

}  // namespace

Outcome online_best_fit(const Problem& problem, const Limits&) {
  return outcome_of(problem, offsets_of(problem), load_bound(problem), "online-best-fit");
}

}  // namespace memopt::layout
