// Offline dynamic storage allocation over one iteration that repeats: a problem and a solution, both plain.
#pragma once

#include <cstdint>
#include <vector>

namespace memopt::planner::layout {

inline constexpr std::uint64_t kAlignment = 512;  // of offsets and sizes

// Needs `bytes` from operation `begin` to operation `end`, both included. `end` may lie in the next iteration (below
// begin + operations); a buffer of at least that length is needed always.
struct Buffer {
  std::uint64_t bytes;  // a multiple of kAlignment
  std::uint64_t begin;  // below operations
  std::uint64_t end;
};

struct Problem {
  std::uint64_t operations = 0;  // after which everything repeats
  std::vector<Buffer> buffers;
};

struct Solution {
  std::vector<std::uint64_t> offsets;  // of each buffer
  std::uint64_t bytes = 0;             // the smallest size that holds all of them
};

constexpr std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The part of a buffer that lies in one iteration: one or two intervals, the second empty where first > last.
struct Spans {
  std::uint64_t first_begin, first_end;    // included
  std::uint64_t second_begin, second_end;  // of a buffer that crosses: from 0; else 1, 0
};

constexpr Spans spans_of(const Buffer& buffer, std::uint64_t operations) {
  if (buffer.end - buffer.begin >= operations - 1) return {0, operations - 1, 1, 0};
  if (buffer.end < operations) return {buffer.begin, buffer.end, 1, 0};
  return {buffer.begin, operations - 1, 0, buffer.end - operations};
}

}  // namespace memopt::planner::layout
