// Internal to planner/layout: the times of a problem reduced to sections.
//
// A section is a maximal set of intervals that all overlap (a maximal clique of their interval graph): one for each run
// of begins that is followed by an end. Two intervals overlap if and only if they share a section; there are at most as
// many sections as intervals. So a solver may forget all other times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

struct SectionRange {  // sections [lo, hi)
  std::uint32_t lo = 0;
  std::uint32_t hi = 0;

  std::uint32_t length() const { return hi - lo; }
};

struct Sections {
  // O(n) where times are dense (at most a few per interval), else O(n log n).
  explicit Sections(const Problem& problem);

  std::uint32_t count = 0;
  std::vector<SectionRange> ranges;  // of each of the problem's intervals
  // Of each buffer, its arc: the shortest range that covers its ranges if time is circular. hi is above `count` where
  // that crosses the end; only where `circular` is set.
  std::vector<SectionRange> arcs;
  std::vector<std::uint64_t> load;
  std::uint64_t peak = 0;  // largest load
  bool circular = false;   // some buffer is needed at the beginning and at the end, but not in between
  bool several = false;    // some buffer has several intervals
  bool aligned = false;    // some buffer has an alignment above 1
  bool fixed = false;      // some buffer has its place

  // Of a buffer, ascending.
  std::span<const SectionRange> of(const Buffer& buffer) const {
    return std::span(ranges).subspan(buffer.first, buffer.count);
  }
};

// Whether two buffers with these ranges conflict: they are needed at the same time.
inline bool overlap(std::span<const SectionRange> a, std::span<const SectionRange> b) {
  for (const SectionRange& x : a) {
    for (const SectionRange& y : b) {
      if (x.lo < y.hi && y.lo < x.hi) return true;
    }
  }
  return false;
}

}  // namespace memopt::layout
