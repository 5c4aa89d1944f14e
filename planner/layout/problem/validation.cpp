#include "planner/layout/problem/validation.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace memopt::layout {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;

std::string text(Interval interval) {
  std::string text = "[";
  return text.append(std::to_string(interval.begin)).append(", ").append(std::to_string(interval.end)).append(")");
}

// A hierarchical bitset: words of bits, and above each layer one bit per word that is not empty. The solvers have one
// of their own: this one must not share their faults.
class NumberSet {
 public:
  explicit NumberSet(std::size_t numbers) {
    do {
      numbers = (numbers + 63) / 64;
      layers_.emplace_back(numbers, 0);
    } while (numbers > 1);
  }

  void insert(std::size_t number) {
    for (auto& layer : layers_) {
      layer[number / 64] |= std::uint64_t{1} << (number % 64);
      number /= 64;
    }
  }

  void erase(std::size_t number) {
    for (auto& layer : layers_) {
      layer[number / 64] &= ~(std::uint64_t{1} << (number % 64));
      if (layer[number / 64] != 0) return;
      number /= 64;
    }
  }

  std::optional<std::size_t> below(std::size_t number) const {
    for (std::size_t at = 0; at < layers_.size(); ++at, number /= 64) {
      const std::uint64_t word = layers_[at][number / 64] & ((std::uint64_t{1} << (number % 64)) - 1);
      if (word == 0) continue;
      std::size_t found = number / 64 * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word));
      while (at-- > 0) found = found * 64 + 63 - static_cast<std::size_t>(std::countl_zero(layers_[at][found]));
      return found;
    }
    return {};
  }

  std::optional<std::size_t> above(std::size_t number) const {
    for (std::size_t at = 0; at < layers_.size(); ++at, number /= 64) {
      const std::uint64_t word = layers_[at][number / 64] & (~std::uint64_t{1} << (number % 64));
      if (word == 0) continue;
      std::size_t found = number / 64 * 64 + static_cast<std::size_t>(std::countr_zero(word));
      while (at-- > 0) found = found * 64 + static_cast<std::size_t>(std::countr_zero(layers_[at][found]));
      return found;
    }
    return {};
  }

 private:
  std::vector<std::vector<std::uint64_t>> layers_;
};

struct Event {
  std::uint64_t time = 0;
  std::uint32_t position = 0;

  friend bool operator<(const Event& a, const Event& b) { return a.time < b.time; }
};

// Begins and ends of the given buffers, each sorted by time. `position` is that in `buffers`.
std::pair<std::vector<Event>, std::vector<Event>> events_of(const Problem& problem,
                                                            const std::vector<std::uint32_t>& buffers) {
  std::vector<Event> begins;
  std::vector<Event> ends;
  begins.reserve(problem.intervals.size());
  ends.reserve(problem.intervals.size());
  for (std::uint32_t position = 0; position < buffers.size(); ++position) {
    for (const Interval& interval : problem.intervals_of(buffers[position])) {
      begins.push_back({interval.begin, position});
      ends.push_back({interval.end, position});
    }
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  return {std::move(begins), std::move(ends)};
}

std::vector<std::uint32_t> all_of(const Problem& problem) {
  std::vector<std::uint32_t> buffers(problem.buffers.size());
  std::iota(buffers.begin(), buffers.end(), 0U);
  return buffers;
}

// Sweeps over time with the live buffers sorted by offset. As long as they are disjoint, a new one that shares bytes
// with any shares bytes with a neighbour.
std::optional<std::string> find_overlap(const Problem& problem, const std::vector<std::uint64_t>& offsets,
                                        std::vector<std::uint32_t> buffers, const Naming& name) {
  std::sort(buffers.begin(), buffers.end(), [&](std::uint32_t a, std::uint32_t b) { return offsets[a] < offsets[b]; });
  const auto [begins, ends] = events_of(problem, buffers);
  NumberSet live(buffers.size());
  const auto end_of = [&](std::size_t position) {
    return offsets[buffers[position]] + problem.buffers[buffers[position]].bytes;
  };
  const auto report = [&](std::size_t lower, std::size_t upper, std::uint64_t time) {
    const std::uint64_t end = std::min(end_of(lower), end_of(upper));
    return name(buffers[lower]) + " and " + name(buffers[upper]) + " share the bytes " +
           text({offsets[buffers[upper]], end}) + " at time " + std::to_string(time);
  };
  std::size_t ended = 0;
  for (const Event& begin : begins) {
    for (; ended < ends.size() && ends[ended].time <= begin.time; ++ended) live.erase(ends[ended].position);
    const std::size_t position = begin.position;
    if (const auto lower = live.below(position); lower && end_of(*lower) > offsets[buffers[position]]) {
      return report(*lower, position, begin.time);
    }
    if (const auto upper = live.above(position); upper && offsets[buffers[*upper]] < end_of(position)) {
      return report(position, *upper, begin.time);
    }
    live.insert(position);
  }
  return {};
}

std::optional<std::string> find_fault_of_intervals(const Problem& problem, std::size_t buffer, const Naming& name) {
  const Buffer& it = problem.buffers[buffer];
  if (it.count == 0) return name(buffer) + " has no interval";
  if (it.first > problem.intervals.size() || it.count > problem.intervals.size() - it.first) {
    return name(buffer) + " names intervals that are not there";
  }
  const auto intervals = problem.intervals_of(buffer);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].begin >= intervals[i].end) {
      return name(buffer) + ": the interval " + text(intervals[i]) + " does not end after its begin";
    }
    if (i > 0 && intervals[i - 1].end >= intervals[i].begin) {
      return name(buffer) + ": the interval " + text(intervals[i]) + " does not begin after the end of " +
             text(intervals[i - 1]);
    }
  }
  return {};
}

bool is_permutation(const std::vector<std::uint32_t>& order, std::size_t size) {
  std::vector<bool> seen(size);
  for (const std::uint32_t buffer : order) {
    if (buffer >= size || seen[buffer]) return false;
    seen[buffer] = true;
  }
  return order.size() == size;
}

}  // namespace

std::string by_number(std::size_t buffer) { return "buffer " + std::to_string(buffer); }

std::optional<std::string> find_fault(const Problem& problem, const Naming& name) {
  if (problem.buffers.size() > std::numeric_limits<std::uint32_t>::max() ||
      problem.intervals.size() > std::numeric_limits<std::uint32_t>::max()) {
    return "more than 2^32 - 1 buffers or intervals";
  }
  std::vector<std::uint64_t> offsets(problem.buffers.size(), 0);
  std::vector<std::uint32_t> fixed;
  std::uint64_t sum = 0;
  std::uint64_t top = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.bytes == 0) return name(i) + " has a size of 0";
    if (buffer.alignment == 0) return name(i) + " has an alignment of 0";
    if (auto fault = find_fault_of_intervals(problem, i, name)) return fault;
    // All stacked, each aligned, above the fixed ones: no sum that a solver computes is larger.
    if (buffer.bytes >= kLimit || buffer.alignment >= kLimit) return name(i) + ": size or alignment of 2^63 or more";
    const std::uint64_t room = buffer.bytes + (buffer.alignment - 1);
    if (room >= kLimit || sum + room >= kLimit) {
      return "the sizes up to " + name(i) + ", aligned, add up to 2^63 or more";
    }
    sum += room;
    if (buffer.fixed == kAnywhere) continue;
    if (buffer.fixed >= kLimit || buffer.fixed + buffer.bytes >= kLimit) return name(i) + " is fixed beyond 2^63";
    offsets[i] = buffer.fixed;
    top = std::max(top, buffer.fixed + buffer.bytes);
    fixed.push_back(static_cast<std::uint32_t>(i));
  }
  if (sum + top >= kLimit) return "the sizes, aligned, and the highest fixed buffer add up to 2^63 or more";
  if (!problem.start_order.empty() && !is_permutation(problem.start_order, problem.buffers.size())) {
    return "the start order is not a permutation of the buffers";
  }
  if (auto overlap = find_overlap(problem, offsets, std::move(fixed), name)) return "fixed: " + *overlap;
  return {};
}

std::optional<std::string> validate(const Problem& problem, const Solution& solution, const Naming& name) {
  if (solution.offsets.size() != problem.buffers.size()) {
    return std::to_string(solution.offsets.size()) + " offsets for " + std::to_string(problem.buffers.size()) +
           " buffers";
  }
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    const std::uint64_t offset = solution.offsets[i];
    if (offset >= kLimit || offset + buffer.bytes >= kLimit) return name(i) + " lies beyond 2^63";
    if (buffer.fixed != kAnywhere && offset != buffer.fixed) {
      return name(i) + " is fixed at " + std::to_string(buffer.fixed) + " but was placed at " + std::to_string(offset);
    }
    if (buffer.fixed == kAnywhere && offset % buffer.alignment != 0) {
      return name(i) + " at " + std::to_string(offset) + " is not aligned to " + std::to_string(buffer.alignment);
    }
    height = std::max(height, offset + buffer.bytes);
  }
  if (height != solution.height) {
    return "the height is given as " + std::to_string(solution.height) + " but is " + std::to_string(height);
  }
  if (problem.capacity && height > *problem.capacity) {
    return "the height " + std::to_string(height) + " is above the capacity " + std::to_string(*problem.capacity);
  }
  return find_overlap(problem, solution.offsets, all_of(problem), name);
}

std::uint64_t load_bound(const Problem& problem) {
  const auto [begins, ends] = events_of(problem, all_of(problem));
  std::uint64_t load = 0;
  std::uint64_t bound = 0;
  std::size_t ended = 0;
  for (const Event& begin : begins) {
    for (; ended < ends.size() && ends[ended].time <= begin.time; ++ended) {
      load -= problem.buffers[ends[ended].position].bytes;
    }
    load += problem.buffers[begin.position].bytes;
    bound = std::max(bound, load);
  }
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) bound = std::max(bound, buffer.fixed + buffer.bytes);
  }
  return bound;
}

}  // namespace memopt::layout
