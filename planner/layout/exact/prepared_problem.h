// A problem prepared for exact search: times reduced to sections (as in problem/sections.h), buffers numbered by their
// begin, bytes divided by the unit of all offsets.
//
// Sections are numbered, and each has the list of its live buffers, its members. A buffer's intervals as ranges of
// sections are its pieces; its hull is the range from the first to the last.
//
// Thread-safe once made. Memory: the sum over sections of live buffers (4 bytes each), besides O(n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

struct PreparedProblem {
  // Sections [begin, end).
  struct Range {
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };
  // Bytes [begin, end) that a fixed buffer occupies, in units.
  struct FixedRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  // Nothing, if the live buffers of all sections were more than `most_members`.
  static std::optional<PreparedProblem> of(const Problem& problem, std::size_t most_members);

  std::size_t buffers() const { return bytes.size(); }
  std::span<const Range> pieces_of(std::int32_t buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return std::span(pieces).subspan(piece_start[b], piece_start[b + 1] - piece_start[b]);
  }
  std::span<const std::int32_t> members_of(std::int32_t section) const {
    const auto s = static_cast<std::size_t>(section);
    return std::span(members).subspan(member_start[s], member_start[s + 1] - member_start[s]);
  }
  // Bytes of fixed buffers, ascending; ranges that touch are one. In a section; and in all sections of a buffer.
  std::span<const FixedRange> fixed_in(std::int32_t section) const {
    const auto s = static_cast<std::size_t>(section);
    return std::span(section_fixed)
        .subspan(section_fixed_start[s], section_fixed_start[s + 1] - section_fixed_start[s]);
  }
  std::span<const FixedRange> fixed_beside(std::int32_t buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return std::span(buffer_fixed).subspan(buffer_fixed_start[b], buffer_fixed_start[b + 1] - buffer_fixed_start[b]);
  }

  std::uint64_t unit = 1;  // bytes per unit
  std::int32_t count = 0;  // of sections

  // Of each buffer that is not fixed, by the first section of its hull.
  std::vector<std::uint32_t> original;  // its number in the problem
  std::vector<std::int64_t> bytes;      // in units
  std::vector<std::int64_t> alignment;  // in units; 1 where any unit is aligned
  std::vector<Range> hull;
  std::vector<std::int64_t> load;       // the largest, in units, of the sections in which it lives
  std::vector<std::uint64_t> lifetime;  // the sum of its intervals' lengths, in the problem's times

  std::vector<std::int32_t> begins;  // the first buffer whose hull begins in section s or later; count + 1 of them

  // Pieces by their begin, over all buffers: owners, and where those that begin in section s or later begin.
  std::vector<std::int32_t> piece_owner;
  std::vector<std::int32_t> piece_begins;

  bool aligned = false;        // some alignment is not 1
  bool has_fixed = false;      // there are fixed buffers
  std::int64_t fixed_top = 0;  // end of the highest, in units

  // Flattened lists, read through the functions above.
  std::vector<Range> pieces;
  std::vector<std::size_t> piece_start;
  std::vector<std::int32_t> members;
  std::vector<std::size_t> member_start;
  std::vector<FixedRange> section_fixed;
  std::vector<std::size_t> section_fixed_start;
  std::vector<FixedRange> buffer_fixed;
  std::vector<std::size_t> buffer_fixed_start;
};

}  // namespace memopt::layout
