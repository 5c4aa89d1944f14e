#include "planner/layout/skyline/candidates.h"

#include <algorithm>
#include <bit>

namespace memopt::layout {

Candidates::Candidates(std::vector<std::uint32_t> buffers, std::span<const SectionRange> arcs) {
  members_.reserve(buffers.size());
  for (const std::uint32_t buffer : buffers) members_.push_back({arcs[buffer].lo, arcs[buffer].hi, 0, buffer});
  leaves_ = std::bit_ceil(std::max(1u, static_cast<std::uint32_t>((members_.size() + kLeafSize - 1) / kLeafSize)));
  nodes_.resize(2 * leaves_);
  split(0, leaves_);
  leaf_of_.resize(members_.size());
  for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
    for (std::uint32_t i = begin_of(leaf); i < begin_of(leaf + 1); ++i) leaf_of_[i] = leaf;
  }
}

// At the median of begin or end, whichever varies more.
void Candidates::split(std::uint32_t first_leaf, std::uint32_t last_leaf) {
  const auto begin = members_.begin() + begin_of(first_leaf);
  const auto end = members_.begin() + begin_of(last_leaf);
  if (last_leaf - first_leaf == 1 || end - begin < 2) return;
  std::uint32_t lo[2] = {~0u, 0};
  std::uint32_t hi[2] = {~0u, 0};
  for (auto it = begin; it != end; ++it) {
    lo[0] = std::min(lo[0], it->lo);
    lo[1] = std::max(lo[1], it->lo);
    hi[0] = std::min(hi[0], it->hi);
    hi[1] = std::max(hi[1], it->hi);
  }
  const std::uint32_t middle = (first_leaf + last_leaf) / 2;
  const auto median = members_.begin() + begin_of(middle);
  // With the buffer's number last: the tree must not depend on the library's nth_element.
  if (lo[1] - lo[0] >= hi[1] - hi[0]) {
    std::nth_element(begin, median, end, [](const Member& a, const Member& b) {
      return a.lo != b.lo ? a.lo < b.lo : a.hi != b.hi ? a.hi < b.hi : a.buffer < b.buffer;
    });
  } else {
    std::nth_element(begin, median, end, [](const Member& a, const Member& b) {
      return a.hi != b.hi ? a.hi < b.hi : a.lo != b.lo ? a.lo < b.lo : a.buffer < b.buffer;
    });
  }
  split(first_leaf, middle);
  split(middle, last_leaf);
}

Candidates::Node Candidates::summary_of_leaf(std::uint32_t leaf) const {
  Node node{0, 0, ~0u, ~0u};
  for (std::uint32_t i = begin_of(leaf), end = begin_of(leaf + 1); i < end; ++i) {
    const Member& member = members_[i];
    if (member.priority == 0) continue;
    node = joined(node, {member.priority, member.lo, member.hi, member.hi - member.lo});
  }
  return node;
}

Candidates::Node Candidates::joined(const Node& a, const Node& b) {
  return {std::max(a.priority, b.priority), std::max(a.largest_lo, b.largest_lo),
          std::min(a.smallest_hi, b.smallest_hi), std::min(a.shortest, b.shortest)};
}

void Candidates::refill(std::span<const std::uint32_t> priorities) {
  for (Member& member : members_) member.priority = priorities[member.buffer];
  for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) nodes_[leaves_ + leaf] = summary_of_leaf(leaf);
  for (std::uint32_t i = leaves_ - 1; i > 0; --i) nodes_[i] = joined(nodes_[2 * i], nodes_[2 * i + 1]);
}

void Candidates::remove(std::uint32_t position) {
  members_[position].priority = 0;
  const std::uint32_t leaf = leaf_of_[position];
  std::uint32_t index = leaves_ + leaf;
  nodes_[index] = summary_of_leaf(leaf);
  for (index /= 2; index > 0; index /= 2) {
    const Node now = joined(nodes_[2 * index], nodes_[2 * index + 1]);
    const Node& before = nodes_[index];
    if (now.priority == before.priority && now.largest_lo == before.largest_lo &&
        now.smallest_hi == before.smallest_hi && now.shortest == before.shortest) {
      break;
    }
    nodes_[index] = now;
  }
}

}  // namespace memopt::layout
