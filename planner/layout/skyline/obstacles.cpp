#include "planner/layout/skyline/obstacles.h"

#include <algorithm>
#include <bit>

namespace memopt::layout {

Obstacles::Obstacles(std::vector<Obstacle> obstacles, std::uint32_t sections) : obstacles_(std::move(obstacles)) {
  if (obstacles_.empty()) return;
  std::stable_sort(obstacles_.begin(), obstacles_.end(),
                   [](const Obstacle& a, const Obstacle& b) { return a.bottom < b.bottom; });
  leaves_ = std::bit_ceil(std::max(1u, sections));
  lists_.resize(2 * leaves_);
  heads_.resize(2 * leaves_);
  lowest_.resize(2 * leaves_);
  for (std::uint32_t i = 0; i < obstacles_.size(); ++i) {
    nodes_of(obstacles_[i].range, [&](std::uint32_t node) { lists_[node].push_back(i); });
  }
  reset();
}

template <class Visit>
void Obstacles::nodes_of(SectionRange range, Visit&& visit) const {
  for (std::uint32_t lo = range.lo + leaves_, hi = range.hi + leaves_; lo < hi; lo /= 2, hi /= 2) {
    if ((lo & 1) != 0) visit(lo++);
    if ((hi & 1) != 0) visit(--hi);
  }
}

void Obstacles::refresh(std::uint32_t node) {
  std::uint32_t lowest = own_lowest(node);
  if (node < leaves_) lowest = std::min({lowest, lowest_[2 * node], lowest_[2 * node + 1]});
  lowest_[node] = lowest;
}

void Obstacles::reset() {
  if (empty()) return;
  passed_.assign(obstacles_.size(), false);
  std::fill(heads_.begin(), heads_.end(), 0);
  for (std::uint32_t node = 2 * leaves_ - 1; node > 0; --node) refresh(node);
}

std::uint32_t Obstacles::lowest(std::uint32_t lo, std::uint32_t hi) const {
  if (empty()) return kNone;
  std::uint32_t result = kNone;
  nodes_of({lo, hi}, [&](std::uint32_t node) { result = std::min(result, lowest_[node]); });
  // Those that cover more than a whole node of the range lie in its ancestors.
  const std::uint32_t ends[2] = {lo + leaves_, hi - 1 + leaves_};
  for (const std::uint32_t end : ends) {
    for (std::uint32_t node = end; node > 0; node /= 2) result = std::min(result, own_lowest(node));
  }
  return result;
}

void Obstacles::pass(std::uint32_t index) {
  passed_[index] = true;
  nodes_of(obstacles_[index].range, [&](std::uint32_t node) {
    while (heads_[node] < lists_[node].size() && passed_[lists_[node][heads_[node]]]) ++heads_[node];
    for (; node > 0; node /= 2) refresh(node);
  });
}

}  // namespace memopt::layout
