// Tiny problems with all extensions, and their answers by exhaustive search: slow and simple, to compare solvers and
// the validator with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout::brute_force {

struct Kind {
  std::uint64_t buffers = 6;  // at most
  std::uint64_t bytes = 5;
  std::uint64_t times = 8;
  bool several = true;  // intervals
  bool aligned = true;
  bool fixed = true;
};

inline bool conflict(const Problem& problem, std::size_t a, std::uint64_t at_a, std::size_t b, std::uint64_t at_b) {
  if (at_a + problem.buffers[a].bytes <= at_b || at_b + problem.buffers[b].bytes <= at_a) return false;
  for (const Interval& x : problem.intervals_of(a)) {
    for (const Interval& y : problem.intervals_of(b)) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

inline bool holds(const Problem& problem, const Solution& solution) {
  if (solution.offsets.size() != problem.buffers.size()) return false;
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    const std::uint64_t offset = solution.offsets[i];
    if (buffer.fixed != kAnywhere ? offset != buffer.fixed : offset % buffer.alignment != 0) return false;
    height = std::max(height, offset + buffer.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      if (conflict(problem, i, offset, j, solution.offsets[j])) return false;
    }
  }
  return height == solution.height && (!problem.capacity || height <= *problem.capacity);
}

inline std::uint64_t peak_load(const Problem& problem) {
  std::uint64_t peak = 0;
  for (const Interval& at : problem.intervals) {
    std::uint64_t load = 0;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      for (const Interval& interval : problem.intervals_of(i)) {
        if (interval.begin <= at.begin && at.begin < interval.end) load += problem.buffers[i].bytes;
      }
    }
    peak = std::max(peak, load);
  }
  return peak;
}

// Tries every offset of every buffer.
inline bool place_from(const Problem& problem, std::size_t next, std::uint64_t height,
                       std::vector<std::uint64_t>& offsets) {
  if (next == problem.buffers.size()) return true;
  const Buffer& buffer = problem.buffers[next];
  for (std::uint64_t offset = 0; offset + buffer.bytes <= height; ++offset) {
    if (buffer.fixed != kAnywhere ? offset != buffer.fixed : offset % buffer.alignment != 0) continue;
    bool free = true;
    for (std::size_t i = 0; i < next && free; ++i) free = !conflict(problem, next, offset, i, offsets[i]);
    if (!free) continue;
    offsets[next] = offset;
    if (place_from(problem, next + 1, height, offsets)) return true;
  }
  return false;
}

// The smallest height of all, without regard to the capacity.
inline std::uint64_t smallest_height(const Problem& problem) {
  std::vector<std::uint64_t> offsets(problem.buffers.size());
  for (std::uint64_t height = peak_load(problem);; ++height) {
    if (place_from(problem, 0, height, offsets)) return height;
  }
}

inline Problem random_problem(std::mt19937_64& random, const Kind& kind = {}) {
  const auto below = [&](std::uint64_t end) { return random() % end; };
  Problem problem;
  const std::uint64_t buffers = 1 + below(kind.buffers);
  // Per problem, so that some have none of an extension and some have nothing else.
  const std::uint64_t several = kind.several ? below(3) : 0;
  const std::uint64_t aligned = kind.aligned ? below(3) : 0;
  const std::uint64_t fixed = kind.fixed ? below(3) : 0;
  for (std::uint64_t i = 0; i < buffers; ++i) {
    const std::uint64_t begin = below(kind.times);
    const std::uint64_t end = begin + 1 + below(kind.times - begin);
    std::vector<Interval> when{{begin, end}};
    if (below(3) < several && end - begin >= 3) {
      const std::uint64_t gap = begin + 1 + below(end - begin - 2);
      when = {{begin, gap}, {gap + 1 + below(end - gap - 1), end}};
    }
    const std::uint64_t alignment = below(3) < aligned ? 1 + below(4) : 1;
    const std::size_t number = problem.add(1 + below(kind.bytes), when, alignment);
    if (below(4) >= fixed) continue;
    const std::uint64_t place = below(2 * kind.bytes);
    bool free = true;
    for (std::size_t j = 0; j < number; ++j) {
      const std::uint64_t other = problem.buffers[j].fixed;
      free = free && (other == kAnywhere || !conflict(problem, number, place, j, other));
    }
    if (free) problem.buffers[number].fixed = place;
  }
  return problem;
}

// For a test's message: what is needed to build the problem again.
inline std::string text(const Problem& problem) {
  std::ostringstream out;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    out << i << ": " << buffer.bytes << " bytes";
    for (const Interval& interval : problem.intervals_of(i))
      out << " [" << interval.begin << "," << interval.end << ")";
    if (buffer.alignment != 1) out << " alignment " << buffer.alignment;
    if (buffer.fixed != kAnywhere) out << " fixed at " << buffer.fixed;
    out << "\n";
  }
  if (problem.capacity) out << "capacity " << *problem.capacity << "\n";
  return out.str();
}

}  // namespace memopt::layout::brute_force
