#include "planner/layout/skyline/priorities.h"

#include <algorithm>
#include <bit>

namespace memopt::layout {
namespace {

// Of buffers with about the same key, the larger comes first.
constexpr double kTieWeight = 1e-4;

}  // namespace

double rough_log2(std::uint64_t value) {
  const int exponent = static_cast<int>(std::bit_width(value)) - 1;
  const double fraction = static_cast<double>(value) / static_cast<double>(std::uint64_t{1} << exponent) - 1;
  return exponent + fraction + 0.344 * fraction * (1 - fraction);
}

std::vector<double> keys_of(const Problem& problem, const Sections& sections, Weights weights) {
  std::vector<double> keys(problem.buffers.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::uint64_t length = 0;
    for (const SectionRange& range : sections.of(problem.buffers[i])) length += range.length();
    keys[i] = (weights.bytes + kTieWeight) * rough_log2(problem.buffers[i].bytes) +
              (weights.length + kTieWeight) * rough_log2(length);
  }
  return keys;
}

std::vector<double> lifetimes_of(const Problem& problem) {
  std::vector<double> keys(problem.buffers.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::uint64_t needed = 0;
    for (const Interval& interval : problem.intervals_of(i)) needed += interval.end - interval.begin;
    keys[i] = static_cast<double>(needed);
  }
  return keys;
}

void rank(const Problem& problem, const Sections& sections, std::span<const double> keys,
          std::vector<std::uint32_t>& priorities) {
  struct Entry {
    double key;
    std::uint32_t begin, order, buffer;
  };
  std::vector<Entry> entries(keys.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) entries[i] = {keys[i], sections.arcs[i].lo, i, i};
  for (std::uint32_t i = 0; i < problem.start_order.size(); ++i) entries[problem.start_order[i]].order = i;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key < b.key;
    return a.begin != b.begin ? a.begin > b.begin : a.order > b.order;
  });
  priorities.resize(keys.size());
  for (std::uint32_t i = 0; i < entries.size(); ++i) priorities[entries[i].buffer] = i + 1;
}

}  // namespace memopt::layout
