// Offline dynamic storage allocation: what has to be placed, and where it was placed. Plain values, shared by all
// solvers, readers and checkers.
//
// Extensions to the textbook's problem: a buffer may be needed in several intervals of time, always at one offset (its
// bytes are elsewhere in between, or it crosses the end of an iteration that repeats); an alignment per buffer; buffers
// with a fixed offset.
//
// Sums of sizes must stay below 2^63: the caller that makes a problem from foreign data checks it with find_fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace memopt::layout {

// Half-open: [begin, end). Times are any ordered numbers; only their order counts.
struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  friend constexpr bool operator==(const Interval&, const Interval&) = default;
};

inline constexpr std::uint64_t kAnywhere = ~std::uint64_t{0};

struct Buffer {
  std::uint64_t bytes = 0;          // at least 1
  std::uint64_t alignment = 1;      // the offset is a multiple of it; at least 1, not necessarily a power of two
  std::uint64_t fixed = kAnywhere;  // the offset that it has already; valid whether aligned or not
  std::uint32_t first = 0;          // into Problem::intervals
  std::uint32_t count = 0;          // of its intervals, at least 1
};

struct Problem {
  std::vector<Buffer> buffers;
  // Those of a buffer are consecutive, ascending, neither empty nor touching each other.
  std::vector<Interval> intervals;
  // No solution may be higher. Without it, the lowest is looked for.
  std::optional<std::uint64_t> capacity;
  // Which of the buffers that begin at the same time counts as the first: a permutation of their positions, or empty
  // (then: by position). It only breaks ties.
  std::vector<std::uint32_t> start_order;

  std::span<const Interval> intervals_of(const Buffer& buffer) const {
    return std::span(intervals).subspan(buffer.first, buffer.count);
  }
  std::span<const Interval> intervals_of(std::size_t buffer) const { return intervals_of(buffers[buffer]); }

  // From the begin of the first interval to the end of the last.
  Interval hull(std::size_t buffer) const {
    const auto its = intervals_of(buffer);
    return {its.front().begin, its.back().end};
  }

  // Adds a buffer and returns its number.
  std::size_t add(std::uint64_t bytes, std::span<const Interval> when, std::uint64_t alignment = 1,
                  std::uint64_t fixed = kAnywhere) {
    buffers.push_back({bytes, alignment, fixed, static_cast<std::uint32_t>(intervals.size()),
                       static_cast<std::uint32_t>(when.size())});
    intervals.insert(intervals.end(), when.begin(), when.end());
    return buffers.size() - 1;
  }
  std::size_t add(std::uint64_t bytes, Interval when, std::uint64_t alignment = 1, std::uint64_t fixed = kAnywhere) {
    return add(bytes, std::span<const Interval>(&when, 1), alignment, fixed);
  }
};

// The first multiple of the alignment from `offset` on.
constexpr std::uint64_t align_up(std::uint64_t offset, std::uint64_t alignment) {
  const std::uint64_t over = alignment == 1 ? 0 : offset % alignment;
  return over == 0 ? offset : offset + (alignment - over);
}

struct Solution {
  std::vector<std::uint64_t> offsets;  // of each buffer, in the order of the problem
  std::uint64_t height = 0;            // the largest offset + bytes
};

}  // namespace memopt::layout
