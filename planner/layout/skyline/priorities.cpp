#include "planner/layout/skyline/priorities.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace memopt::layout {
namespace {

// Of buffers with about the same key, the larger comes first.
constexpr double kTieWeight = 1e-4;

// One pass for each of these; where all have the same digit, none.
constexpr unsigned kDigit = 11, kDigits = 6;
constexpr std::uint64_t kValues = 1U << kDigit;
constexpr std::size_t kFew = 2000;  // keys: to count digits costs more than to compare

// As integers that are in the same order; a zero has one sign only.
std::uint64_t ordered_bits(double key) {
  const auto bits = std::bit_cast<std::uint64_t>(key + 0.0);
  return (bits >> 63) != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}

void by_descending_begin(const Sections& sections, std::vector<std::uint32_t>& order,
                         std::vector<std::uint32_t>& other) {
  std::vector<std::uint32_t> first(sections.count + 1);
  const auto place = [&](std::uint32_t i) { return sections.count - 1 - sections.arcs[i].lo; };
  for (const std::uint32_t i : order) ++first[place(i) + 1];
  for (std::size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
  for (const std::uint32_t i : order) other[first[place(i)]++] = i;
  order.swap(other);
}

void by_ascending_key(std::span<const double> keys, std::vector<std::uint32_t>& order,
                      std::vector<std::uint32_t>& other) {
  if (order.size() < kFew) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
    return;
  }
  struct Entry {
    std::uint64_t key;
    std::uint32_t buffer;
  };
  std::vector<Entry> entries, sorted(order.size());
  entries.reserve(order.size());
  std::vector<std::array<std::uint32_t, kValues>> counts(kDigits);
  for (const std::uint32_t i : order) {
    const std::uint64_t key = ordered_bits(keys[i]);
    entries.push_back({key, i});
    for (unsigned d = 0; d < kDigits; ++d) ++counts[d][key >> (kDigit * d) & (kValues - 1)];
  }
  for (unsigned d = 0; d < kDigits; ++d) {
    const auto digit = [d](const Entry& entry) { return entry.key >> (kDigit * d) & (kValues - 1); };
    if (entries.empty() || counts[d][digit(entries.front())] == entries.size()) continue;
    std::uint32_t sum = 0;
    for (std::uint32_t& count : counts[d]) sum += std::exchange(count, sum);
    for (const Entry& entry : entries) sorted[counts[d][digit(entry)]++] = entry;
    entries.swap(sorted);
  }
  for (std::size_t k = 0; k < entries.size(); ++k) other[k] = entries[k].buffer;
  order.swap(other);
}

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
  // The last among equals first: by position, or as they are counted; then by begin; then by key. Each pass keeps the
  // order of the one before.
  const auto count = static_cast<std::uint32_t>(keys.size());
  std::vector<std::uint32_t> order(count), other(count);
  for (std::uint32_t k = 0; k < count; ++k)
    order[count - 1 - k] = problem.start_order.empty() ? k : problem.start_order[k];
  by_descending_begin(sections, order, other);
  by_ascending_key(keys, order, other);
  priorities.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) priorities[order[i]] = i + 1;
}

}  // namespace memopt::layout
