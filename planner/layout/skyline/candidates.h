// Internal to planner/layout/skyline: of the unplaced buffers that fit into a range of time, the one with the largest
// priority.
//
// A k-d tree (Bentley 1975) over (begin, end) with the largest priority and the least length in each node; a query is
// begin >= lo, end <= hi.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem/sections.h"

namespace memopt::layout {

class Candidates {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // O(n log n). `buffers` are the ones to be placed, `arcs` are those of all buffers.
  Candidates(std::vector<std::uint32_t> buffers, std::span<const SectionRange> arcs);

  std::size_t size() const { return members_.size(); }
  std::uint32_t buffer(std::uint32_t position) const { return members_[position].buffer; }

  // All are unplaced again; `priorities` by buffer, at least 1. O(n).
  void refill(std::span<const std::uint32_t> priorities);

  // Of the candidates within [lo, hi) whose priority is above `above` and for which `accept(position)` is true, the
  // position of the one with the largest priority, or kNone. `above` becomes its priority. Adds its work to `steps`.
  template <class Accept>
  std::uint32_t best(std::uint32_t lo, std::uint32_t hi, std::uint32_t& above, std::uint64_t& steps, Accept&& accept);

  void remove(std::uint32_t position);

 private:
  struct Member {
    std::uint32_t lo, hi, priority, buffer;
  };
  struct Node {
    std::uint32_t priority, largest_lo, smallest_hi, shortest;
  };
  static constexpr std::uint32_t kLeafSize = 12;

  std::uint32_t begin_of(std::uint32_t leaf) const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(leaf) * members_.size() / leaves_);
  }
  void split(std::uint32_t first_leaf, std::uint32_t last_leaf);
  Node summary_of_leaf(std::uint32_t leaf) const;
  static Node joined(const Node& a, const Node& b);

  std::vector<Member> members_;
  std::vector<Node> nodes_;  // 1: the root; those from leaves_ on are leaves
  std::vector<std::uint32_t> leaf_of_;
  std::uint32_t leaves_ = 1;
};

template <class Accept>
std::uint32_t Candidates::best(std::uint32_t lo, std::uint32_t hi, std::uint32_t& above, std::uint64_t& steps,
                               Accept&& accept) {
  std::uint32_t found = kNone;
  const std::uint32_t length = hi - lo;
  std::uint32_t stack[64];
  std::uint32_t depth = 0;
  const auto promising = [&](const Node& node) {
    return node.priority > above && node.largest_lo >= lo && node.smallest_hi <= hi && node.shortest <= length;
  };
  if (promising(nodes_[1])) stack[depth++] = 1;
  std::uint64_t visited = 0;
  while (depth > 0) {
    const std::uint32_t index = stack[--depth];
    ++visited;
    if (nodes_[index].priority <= above) continue;  // a better one was found since it was pushed
    if (index >= leaves_) {
      const std::uint32_t leaf = index - leaves_;
      for (std::uint32_t i = begin_of(leaf), end = begin_of(leaf + 1); i < end; ++i) {
        const Member& member = members_[i];
        if (member.priority > above && member.lo >= lo && member.hi <= hi && accept(i)) {
          above = member.priority;
          found = i;
        }
      }
      continue;
    }
    std::uint32_t first = 2 * index;
    std::uint32_t second = first + 1;
    if (nodes_[second].priority > nodes_[first].priority) std::swap(first, second);
    if (promising(nodes_[second])) stack[depth++] = second;
    if (promising(nodes_[first])) stack[depth++] = first;
  }
  steps += visited / 8;
  return found;
}

}  // namespace memopt::layout
