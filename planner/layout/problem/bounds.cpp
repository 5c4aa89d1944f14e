#include "planner/layout/problem/bounds.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace memopt::layout {
namespace {

// The greatest common divisor of all offsets in any solution worth considering.
std::uint64_t common_unit(const Problem& problem) {
  std::uint64_t unit = 0;
  for (const Buffer& buffer : problem.buffers) {
    unit = std::gcd(unit, buffer.fixed != kAnywhere ? buffer.fixed : buffer.alignment);
    if (unit == 1) break;
  }
  return std::max<std::uint64_t>(unit, 1);
}

std::uint64_t aligned_bound(const Problem& problem, const Sections& sections, std::uint64_t unit) {
  std::vector<std::uint64_t> load(sections.count + 1, 0);
  std::uint64_t largest_padding = 0;
  for (const Buffer& buffer : problem.buffers) {
    const std::uint64_t bytes = align_up(buffer.bytes, unit);
    largest_padding = std::max(largest_padding, bytes - buffer.bytes);
    for (const SectionRange& range : sections.of(buffer)) {
      load[range.lo] += bytes;
      load[range.hi] -= bytes;
    }
  }
  std::uint64_t peak = 0;
  std::uint64_t sum = 0;
  for (const std::uint64_t change : load) peak = std::max(peak, sum += change);
  return peak - largest_padding;
}

// The lowest end that each buffer could have if there were only the fixed ones besides.
std::uint64_t bound_beside_fixed(const Problem& problem, const Sections& sections, std::uint64_t most_pairs) {
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
    const auto ranges = sections.of(buffer);
    std::uint64_t offset = 0;
    for (const std::uint32_t i : fixed) {
      const Buffer& other = problem.buffers[i];
      if (other.fixed + other.bytes <= offset || !overlap(ranges, sections.of(other))) continue;
      if (offset + buffer.bytes <= other.fixed) break;
      offset = align_up(other.fixed + other.bytes, buffer.alignment);
    }
    bound = std::max(bound, offset + buffer.bytes);
  }
  return bound;
}

}  // namespace

std::uint64_t lower_bound_of(const Problem& problem, const Sections& sections, std::uint64_t most_pairs) {
  std::uint64_t bound = sections.peak;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) bound = std::max(bound, buffer.fixed + buffer.bytes);
  }
  if (sections.aligned) {
    const std::uint64_t unit = common_unit(problem);
    if (unit > 1) bound = std::max(bound, aligned_bound(problem, sections, unit));
  }
  if (sections.fixed) bound = std::max(bound, bound_beside_fixed(problem, sections, most_pairs));
  return bound;
}

Solution stacked(const Problem& problem) {
  Solution solution;
  solution.offsets.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) solution.height = std::max(solution.height, buffer.fixed + buffer.bytes);
  }
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) {
      solution.offsets.push_back(buffer.fixed);
      continue;
    }
    solution.offsets.push_back(align_up(solution.height, buffer.alignment));
    solution.height = solution.offsets.back() + buffer.bytes;
  }
  return solution;
}

std::uint64_t unit_of(const Problem& problem) {
  std::uint64_t unit = 0;
  for (const Buffer& buffer : problem.buffers) {
    unit = std::gcd(unit, buffer.bytes);
    if (buffer.fixed != kAnywhere) unit = std::gcd(unit, buffer.fixed);
  }
  if (unit == 0) return 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.fixed != kAnywhere || unit % buffer.alignment == 0) continue;
      const std::uint64_t common = std::gcd(unit, buffer.alignment);
      changed |= common != unit;
      unit = common;
    }
  }
  return unit;
}

}  // namespace memopt::layout
