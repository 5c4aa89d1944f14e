// Internal to the room: a problem with its times reduced to what decides about overlap.
//
// A section is a stretch of time between an end and the begins before it: a largest set of intervals that all overlap.
// Two intervals overlap if and only if they share a section; there are at most as many sections as buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/layout/problem.h"

namespace memopt::layout {

struct Span {  // sections [lo, hi)
  std::uint32_t lo = 0;
  std::uint32_t hi = 0;

  std::uint32_t length() const { return hi - lo; }
};

struct Timeline {
  // O(n) where times are dense (at most a few per interval), else O(n log n).
  explicit Timeline(const Problem& problem);

  std::uint32_t count = 0;
  std::vector<Span> spans;  // of each of the problem's intervals
  // Of each buffer: the shortest stretch that covers its spans if time is a circle. hi is above `count` where that
  // crosses the end; only where `circle` is set.
  std::vector<Span> arcs;
  std::vector<std::uint64_t> load;
  std::uint64_t peak = 0;  // largest load
  bool circle = false;     // some buffer is needed at the beginning and at the end, but not in between
  bool several = false;    // some buffer has several intervals
  bool aligned = false;    // some buffer has an alignment above 1
  bool fixed = false;      // some buffer has its place

  std::span<const Span> of(const Buffer& buffer) const { return std::span(spans).subspan(buffer.first, buffer.count); }
};

}  // namespace memopt::layout
