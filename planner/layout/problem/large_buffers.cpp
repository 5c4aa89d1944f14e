#include "planner/layout/problem/large_buffers.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace memopt::layout {
namespace {

// The largest sum of the sizes of order[from..] that are needed at the same time.
std::uint64_t load_from(const Problem& problem, const Sections& sections, const std::vector<std::uint32_t>& order,
                        std::size_t from, std::vector<std::int64_t>& changes) {
  changes.assign(sections.count + 1, 0);
  for (std::size_t k = from; k < order.size(); ++k) {
    const Buffer& buffer = problem.buffers[order[k]];
    for (const SectionRange& range : sections.of(buffer)) {
      changes[range.lo] += static_cast<std::int64_t>(buffer.bytes);
      changes[range.hi] -= static_cast<std::int64_t>(buffer.bytes);
    }
  }
  std::int64_t now = 0, most = 0;
  for (const std::int64_t change : changes) most = std::max(most, now += change);
  return static_cast<std::uint64_t>(most);
}

}  // namespace

std::optional<LargeBuffers> large_buffers(const Problem& problem, const Sections& sections, double part) {
  std::vector<std::uint32_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Buffer &one = problem.buffers[a], &other = problem.buffers[b];
    if ((one.fixed == kAnywhere) != (other.fixed == kAnywhere)) return one.fixed != kAnywhere;
    return one.bytes > other.bytes;
  });
  const auto most = static_cast<std::uint64_t>(part * static_cast<double>(sections.peak));
  std::vector<std::int64_t> changes;
  std::size_t enough = order.size() / 2, too_few = 0;
  if (enough == 0 || load_from(problem, sections, order, enough, changes) > most) return std::nullopt;
  while (enough - too_few > 1) {
    const std::size_t half = (enough + too_few) / 2;
    (load_from(problem, sections, order, half, changes) <= most ? enough : too_few) = half;
  }
  const auto is_fixed = [&](std::uint32_t i) { return problem.buffers[i].fixed != kAnywhere; };
  const auto fixed = std::partition_point(order.begin(), order.end(), is_fixed) - order.begin();
  enough = std::max(enough, static_cast<std::size_t>(fixed));
  if (enough > order.size() / 2) return std::nullopt;
  LargeBuffers large;
  large.numbers.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(enough));
  // As they were, by which ties are broken.
  std::sort(large.numbers.begin(), large.numbers.end());
  for (const std::uint32_t i : large.numbers) {
    const Buffer& buffer = problem.buffers[i];
    large.problem.add(buffer.bytes, problem.intervals_of(buffer), buffer.alignment, buffer.fixed);
  }
  return large;
}

}  // namespace memopt::layout
