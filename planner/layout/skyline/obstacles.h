// Internal to planner/layout/skyline: rectangles of time and space that are taken before a run, and the lowest of them
// over a range of time.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/layout/problem/sections.h"

namespace memopt::layout {

struct Obstacle {
  SectionRange range;
  std::uint64_t bottom = 0;
  std::uint64_t top = 0;
};

class Obstacles {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // O(n log n). A segment tree over sections: each obstacle lies in the list of O(log n) nodes, ascending.
  Obstacles(std::vector<Obstacle> obstacles, std::uint32_t sections);

  bool empty() const { return obstacles_.empty(); }
  const Obstacle& operator[](std::uint32_t index) const { return obstacles_[index]; }

  // No obstacle is passed any more.
  void reset();
  // Of those not passed that have a section in [lo, hi), the one with the lowest bottom, or kNone. O(log n).
  std::uint32_t lowest(std::uint32_t lo, std::uint32_t hi) const;
  std::uint64_t lowest_bottom(std::uint32_t lo, std::uint32_t hi) const {
    const std::uint32_t index = lowest(lo, hi);
    return index == kNone ? ~std::uint64_t{0} : obstacles_[index].bottom;
  }
  // The skyline has passed this one. Obstacles of one section must be passed from the lowest up.
  void pass(std::uint32_t index);

 private:
  template <class Visit>
  void nodes_of(SectionRange range, Visit&& visit) const;
  std::uint32_t own_lowest(std::uint32_t node) const {
    return heads_[node] < lists_[node].size() ? lists_[node][heads_[node]] : kNone;
  }
  void refresh(std::uint32_t node);

  std::vector<Obstacle> obstacles_;  // ascending by bottom: the smaller index is the lower
  std::uint32_t leaves_ = 1;
  std::vector<std::vector<std::uint32_t>> lists_;  // of each node, those that cover it but not its parent
  std::vector<std::uint32_t> heads_;               // of the lists: those before it were passed
  std::vector<std::uint32_t> lowest_;              // of a node's list and all below it
  std::vector<bool> passed_;
};

}  // namespace memopt::layout
