// Internal to the room: single buffers put into a solution, in which others make room by moving up.
//
// Buffers are kept in an order in which any two that live at the same time stand as they lie, the lower first. Where no
// hole is large enough, a buffer goes into one that is too small, and those above it that are in its way move up as far
// as they must, which pushes those above them, and so on until holes have taken it up. Only those are touched, and the
// order stays as it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/kept_places.h"
#include "planner/layout/problem.h"
#include "planner/layout/rank_set.h"
#include "planner/layout/timeline.h"
#include "planner/layout/watch.h"

namespace memopt::layout {

class Insertion {
 public:
  // All must outlive it. O(n).
  Insertion(const Problem& problem, const Timeline& timeline, const KeptPlaces& kept);

  // Puts a buffer that has no place into the smallest hole that is large enough and ends at `goal` at most. If there is
  // none: to its place before (unless that is kAnywhere), into one of a few holes that are too small, or above all
  // others; where the height stays within `enough`, or else where it becomes the least. O(n), and O(n) for what moves,
  // all buffers together: once that is spent, a buffer that fits nowhere goes above all others. False, and nothing is
  // done, if the allowance ended.
  bool put(std::uint32_t buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough, Allowance& allowance);

  std::uint64_t height() const { return height_; }
  std::vector<std::uint64_t> offsets() const;

 private:
  struct Entry {
    std::uint64_t least;  // ascending; not above the offset, which differs once it has moved
    std::uint64_t offset;
    std::uint32_t lo, hi;  // first section and end
    std::uint32_t buffer;
    bool several;  // intervals
  };
  // Below the entry with this number, above all others that live at the same time and have a smaller number.
  struct Way {
    std::uint32_t position;
    std::uint64_t offset;
    std::uint64_t missing;  // bytes; 0: it fits
    std::uint64_t hole;
  };
  struct Near {  // of those that live at the same time as a buffer
    std::uint32_t position;
    std::uint64_t bottom, top;
  };
  struct Move {
    std::uint32_t position;
    std::uint64_t before;
  };

  Entry entry_of(std::uint32_t buffer, std::uint64_t offset) const;
  std::uint64_t top(const Entry& entry) const { return entry.offset + problem_.buffers[entry.buffer].bytes; }
  bool meet(const Entry& a, const Entry& b) const;
  void find_ways(const Entry& buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough);
  // The height with what has to move, below `below`; kAnywhere: not possible. Leaves the moves behind.
  std::uint64_t make_room(const Way& way, Entry buffer, std::uint64_t below, Allowance& allowance);
  bool push(const Entry& by, std::uint32_t from, std::uint64_t below, Allowance& allowance);
  void take_back();
  void insert(const Way& way, Entry buffer, std::uint64_t height);

  const Problem& problem_;
  const Timeline& timeline_;
  std::vector<Entry> entries_;
  std::uint64_t height_ = 0;
  std::vector<Near> near_;
  std::vector<Way> ways_;
  std::vector<Move> moves_;
  RankSet pushing_;          // numbers of entries that have moved and have not pushed yet
  std::uint64_t most_seen_;  // entries, for what moves
  std::uint64_t seen_ = 0;
  std::uint64_t end_of_way_ = 0;  // so many may be seen, with the way that is tried
};

}  // namespace memopt::layout
