#include "planner/layout/bounds.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace memopt::layout {
namespace {

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

// What divides all offsets of any solution worth looking at; 1 if nothing does.
std::uint64_t common_unit(const Problem& problem) {
  std::uint64_t unit = 0;
  for (const Buffer& buffer : problem.buffers) {
    unit = std::gcd(unit, buffer.fixed != kAnywhere ? buffer.fixed : buffer.alignment);
    if (unit == 1) break;
  }
  return std::max<std::uint64_t>(unit, 1);
}

std::uint64_t aligned_bound(const Problem& problem, const Timeline& timeline, std::uint64_t unit) {
  std::vector<std::uint64_t> load(timeline.count + 1, 0);
  std::uint64_t largest_padding = 0;
  for (const Buffer& buffer : problem.buffers) {
    const std::uint64_t bytes = rounded_up(buffer.bytes, unit);
    largest_padding = std::max(largest_padding, bytes - buffer.bytes);
    for (const Span& span : timeline.of(buffer)) {
      load[span.lo] += bytes;
      load[span.hi] -= bytes;
    }
  }
  std::uint64_t peak = 0;
  std::uint64_t sum = 0;
  for (const std::uint64_t change : load) peak = std::max(peak, sum += change);
  return peak - largest_padding;
}

bool overlap(std::span<const Span> a, std::span<const Span> b) {
  for (const Span& x : a) {
    for (const Span& y : b) {
      if (x.lo < y.hi && y.lo < x.hi) return true;
    }
  }
  return false;
}

// The lowest end that each buffer could have, were it alone with the fixed ones.
std::uint64_t bound_beside_fixed(const Problem& problem, const Timeline& timeline, std::uint64_t most_pairs) {
  std::vector<std::uint32_t> fixed;
  for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].fixed != kAnywhere) fixed.push_back(i);
  }
  if (fixed.size() * problem.buffers.size() > most_pairs) return 0;
  std::sort(fixed.begin(), fixed.end(),
            [&](std::uint32_t a, std::uint32_t b) { return problem.buffers[a].fixed < problem.buffers[b].fixed; });
  std::uint64_t bound = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) continue;
    const auto spans = timeline.of(buffer);
    std::uint64_t offset = 0;
    for (const std::uint32_t i : fixed) {
      const Buffer& other = problem.buffers[i];
      if (other.fixed + other.bytes <= offset || !overlap(spans, timeline.of(other))) continue;
      if (offset + buffer.bytes <= other.fixed) break;
      offset = rounded_up(other.fixed + other.bytes, buffer.alignment);
    }
    bound = std::max(bound, offset + buffer.bytes);
  }
  return bound;
}

}  // namespace

std::uint64_t lower_bound_of(const Problem& problem, const Timeline& timeline, std::uint64_t most_pairs) {
  std::uint64_t bound = timeline.peak;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) bound = std::max(bound, buffer.fixed + buffer.bytes);
  }
  if (timeline.aligned) {
    const std::uint64_t unit = common_unit(problem);
    if (unit > 1) bound = std::max(bound, aligned_bound(problem, timeline, unit));
  }
  if (timeline.fixed) bound = std::max(bound, bound_beside_fixed(problem, timeline, most_pairs));
  return bound;
}

}  // namespace memopt::layout
