// Internal to planner/layout/skyline: the load of the unplaced buffers, by section.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace memopt::layout {

// A segment tree with range addition and range maximum, without lazy propagation.
class UnplacedLoad {
 public:
  // O(n).
  void fill(const std::vector<std::uint64_t>& load);
  // O(log n) each.
  void subtract(std::uint32_t lo, std::uint32_t hi, std::uint64_t bytes);
  std::uint64_t maximum(std::uint32_t lo, std::uint32_t hi) const;
  // The first section of the range that has its maximum. O(log^2 n).
  std::uint32_t argmax(std::uint32_t lo, std::uint32_t hi, std::uint64_t maximum) const;

 private:
  std::uint64_t of_node(std::uint32_t node) const { return largest_[node] - subtracted_[node]; }
  void refresh(std::uint32_t node) { largest_[node] = std::max(of_node(2 * node), of_node(2 * node + 1)); }

  std::uint32_t leaves_ = 1;
  // Before what was subtracted from the node itself and from those above it.
  std::vector<std::uint64_t> largest_;
  std::vector<std::uint64_t> subtracted_;
};

}  // namespace memopt::layout
