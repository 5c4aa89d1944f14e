// A problem prepared for exact search: time cut into sections, buffers numbered by their begin, bytes divided by what
// divides them all.
//
// A section is a time at which no set of live buffers is contained in a neighbour's: one for each run of begins that is
// followed by an end. Any two buffers that are live together are so in some section, so that nothing is lost by leaving
// out the other times. At most as many sections as intervals.
//
// Thread-safe once made. Memory: the sum over sections of live buffers (4 bytes each), besides O(n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/layout/problem.h"

namespace memopt::layout {

// The largest unit of which all offsets that matter are multiples: buffers rest on others, on fixed ones, or on a
// multiple of their alignment. At least 1.
std::uint64_t unit_of(const Problem& problem);

struct Sections {
  // Sections [begin, end).
  struct Range {
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };
  // Bytes [begin, end) that a fixed buffer has, in units.
  struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  // Nothing, if the live buffers of all sections were more than `most_members`.
  static std::optional<Sections> of(const Problem& problem, std::size_t most_members);

  std::size_t buffers() const { return bytes.size(); }
  std::span<const Range> pieces_of(std::int32_t buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return std::span(pieces).subspan(piece_start[b], piece_start[b + 1] - piece_start[b]);
  }
  std::span<const std::int32_t> members_of(std::int32_t section) const {
    const auto s = static_cast<std::size_t>(section);
    return std::span(members).subspan(member_start[s], member_start[s + 1] - member_start[s]);
  }
  // Of fixed buffers, ascending; blocks that touch are one.
  std::span<const Block> blocks_of(std::int32_t section) const {
    const auto s = static_cast<std::size_t>(section);
    return std::span(section_blocks)
        .subspan(section_block_start[s], section_block_start[s + 1] - section_block_start[s]);
  }
  std::span<const Block> blocks_in_the_way_of(std::int32_t buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return std::span(buffer_blocks).subspan(buffer_block_start[b], buffer_block_start[b + 1] - buffer_block_start[b]);
  }

  std::uint64_t unit = 1;  // bytes per unit
  std::int32_t count = 0;  // of sections

  // Of each buffer that is not fixed, by the first section of its hull.
  std::vector<std::uint32_t> original;  // its number in the problem
  std::vector<std::int64_t> bytes;      // in units
  std::vector<std::int64_t> alignment;  // in units, 1 where every unit will do
  std::vector<Range> hull;
  std::vector<std::int64_t> load;       // the largest, in units, of the sections in which it lives
  std::vector<std::uint64_t> lifetime;  // times that it is needed, as the problem counts them

  std::vector<std::int32_t> begins;  // the first buffer whose hull begins in section s or later; count + 1 of them

  // Pieces by their begin, over all buffers: owners, and where those that begin in section s or later begin.
  std::vector<std::int32_t> piece_owner;
  std::vector<std::int32_t> piece_begins;

  bool aligned = false;        // some alignment is not 1
  bool blocked = false;        // there are fixed buffers
  std::int64_t fixed_top = 0;  // end of the highest, in units

  // Flattened lists, read through the functions above.
  std::vector<Range> pieces;
  std::vector<std::size_t> piece_start;
  std::vector<std::int32_t> members;
  std::vector<std::size_t> member_start;
  std::vector<Block> section_blocks;
  std::vector<std::size_t> section_block_start;
  std::vector<Block> buffer_blocks;
  std::vector<std::size_t> buffer_block_start;
};

}  // namespace memopt::layout
