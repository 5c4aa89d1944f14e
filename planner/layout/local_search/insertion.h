// Internal to planner/layout: inserts single buffers into a solution, in which others make room by moving up.
//
// Buffers are kept in an order in which of any two that overlap in time the lower comes first. Where no hole is large
// enough, a buffer goes into one that is too small. The buffers above it that conflict with it move up as far as they
// must, which pushes those above them, and so on until holes have absorbed it. Only these are touched, and the order
// does not change.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/local_search/hierarchical_bitset.h"
#include "planner/layout/local_search/kept_places.h"
#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

class Insertion {
 public:
  // All must outlive it. O(n).
  Insertion(const Problem& problem, const Sections& sections, const KeptPlaces& kept);

  // Inserts an unplaced buffer into the smallest hole that is large enough and ends at `goal` at most. If there is
  // none: at its offset before (unless that is kAnywhere), into one of a few holes that are too small, or above all
  // others; where the height stays within `enough`, or else where it becomes least. O(n), and O(n) for the moves of all
  // calls together: once these are used up, a buffer that fits nowhere goes above all others. False, and nothing is
  // changed, if the allowance ended.
  bool insert(std::uint32_t buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough,
              Allowance& allowance);

  std::uint64_t height() const { return height_; }
  std::vector<std::uint64_t> offsets() const;

 private:
  struct Entry {
    std::uint64_t least;  // ascending; not above the offset, which differs once it has moved
    std::uint64_t offset;
    std::uint32_t lo, hi;  // first section and end
    std::uint32_t buffer;
    bool several;  // it has several intervals
  };
  // Below the entry at this position, above all its neighbours with a smaller position.
  struct InsertionPoint {
    std::uint32_t position;
    std::uint64_t offset;
    std::uint64_t missing;  // bytes that the hole is too small; 0: it fits
    std::uint64_t hole;
  };
  struct Neighbour {  // of a buffer: a placed one that overlaps it in time
    std::uint32_t position;
    std::uint64_t bottom, top;
  };
  struct Move {
    std::uint32_t position;
    std::uint64_t before;
  };

  Entry entry_of(std::uint32_t buffer, std::uint64_t offset) const;
  std::uint64_t top(const Entry& entry) const { return entry.offset + problem_.buffers[entry.buffer].bytes; }
  bool conflict(const Entry& a, const Entry& b) const;
  void find_points(const Entry& buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough);
  // Moves what is in the way, and returns the height; kAnywhere if it could not stay below `below`. The moves are not
  // undone.
  std::uint64_t make_room(const InsertionPoint& point, Entry buffer, std::uint64_t below, Allowance& allowance);
  bool push(const Entry& by, std::uint32_t from, std::uint64_t below, Allowance& allowance);
  void undo();
  void place_at(const InsertionPoint& point, Entry buffer, std::uint64_t height);

  const Problem& problem_;
  const Sections& sections_;
  std::vector<Entry> entries_;
  std::uint64_t height_ = 0;
  std::vector<Neighbour> neighbours_;
  std::vector<InsertionPoint> points_;
  std::vector<Move> moves_;
  HierarchicalBitset pending_;  // positions of entries that have moved and have not pushed others yet
  std::uint64_t visit_limit_;   // entries that all moves together may visit
  std::uint64_t visited_ = 0;
  std::uint64_t point_limit_ = 0;  // visited_ may not exceed it while one point is tried
};

}  // namespace memopt::layout
