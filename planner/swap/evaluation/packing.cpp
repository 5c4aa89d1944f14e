#include "planner/swap/evaluation/packing.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace memopt::swap {
std::size_t Packing::TakenBytes::find(std::uint64_t begin, std::uint32_t of) const {
  auto at = static_cast<std::size_t>(std::lower_bound(from.begin(), from.end(), begin) - from.begin());
  while (at < from.size() && from[at] == begin && item[at] < of) ++at;
  return at;
}

void Packing::TakenBytes::insert(std::uint64_t begin, std::uint64_t end, std::uint32_t of) {
  const auto at = static_cast<std::ptrdiff_t>(find(begin, of));
  from.insert(from.begin() + at, begin);
  to.insert(to.begin() + at, end);
  item.insert(item.begin() + at, of);
}

void Packing::TakenBytes::erase(std::uint64_t begin, std::uint32_t of) {
  const auto at = static_cast<std::ptrdiff_t>(find(begin, of));
  from.erase(from.begin() + at);
  to.erase(to.begin() + at);
  item.erase(item.begin() + at);
}

Packing::Packing(std::size_t items)
    : placements_(items),
      rank_(items),
      new_rank_(items),
      placed_((items + 63) / 64),
      dirty_(placed_),
      conflicting_(placed_) {}

// Marks the items that an attempt has to look at: those that have changed or come earlier or later than they did, and
// their conflicts. The first rank of one.
std::size_t Packing::begin_with(const std::vector<std::uint32_t>& order, const Conflicts& conflicts,
                                const std::vector<std::uint32_t>& changed, const ItemSet& dirty) {
  const std::size_t count = order.size();
  if (order_.empty()) {
    dirty_.assign(dirty_.size(), ~std::uint64_t{0});
    for (std::uint32_t k = 0; k < count; ++k) new_rank_[order[k]] = k;
    return 0;
  }
  dirty_ = dirty;
  const auto mark = [&](std::uint32_t item) {
    const std::uint64_t* const row = conflicts.row(item);
    for (std::size_t w = 0; w < dirty_.size(); ++w) dirty_[w] |= row[w];
  };
  std::size_t first = 0, last = count;
  while (first < count && order_[first] == order[first]) ++first;
  while (last > first && order_[last - 1] == order[last - 1]) --last;
  new_rank_ = rank_;
  for (std::size_t k = first; k < last; ++k) new_rank_[order[k]] = static_cast<std::uint32_t>(k);
  if (first < last) {
    // One that has moved over the others is the only one whose place among each of them is another.
    const auto at = [](const std::vector<std::uint32_t>& list, std::size_t k) {
      return list.begin() + static_cast<std::ptrdiff_t>(k);
    };
    if (std::equal(at(order_, first), at(order_, last - 1), at(order, first + 1))) {
      mark(order[first]);
    } else if (std::equal(at(order_, first + 1), at(order_, last), at(order, first))) {
      mark(order_[first]);
    } else {
      for (std::size_t k = first; k < last; ++k) mark(order_[k]);
    }
  }
  for (const std::uint32_t item : changed) {
    mark(item);
    first = std::min<std::size_t>(first, std::min(rank_[item], new_rank_[item]));
  }
  return first;
}

std::uint64_t Packing::attempt(const std::vector<std::uint32_t>& order, const std::vector<Shape>& shapes,
                               const Conflicts& conflicts, const std::vector<std::uint32_t>& changed,
                               const ItemSet& dirty, std::uint64_t most) {
  const std::size_t first = begin_with(order, conflicts, changed, dirty);
  moves_ = 0;
  new_taken_ = taken_;
  placed_.assign(placed_.size(), 0);
  std::uint64_t height = 0;
  for (std::size_t k = 0; k < first; ++k) {
    add(placed_, order[k]);
    height = std::max(height, placements_[order[k]].top);
  }
  for (std::size_t k = first; k < order.size(); ++k) {
    const std::uint32_t item = order[k];
    if (has(dirty_.data(), item)) {
      place(item, shapes[item], conflicts);
      height = std::max(height, moved_[moves_ - 1].place.top);
    } else {
      // Its conflicts are where they were.
      height = std::max(height, placements_[item].top);
    }
    if (height > most) return kTooHigh;
    add(placed_, item);
  }
  return height;
}

void Packing::place(std::uint32_t item, const Shape& shape, const Conflicts& conflicts) {
  const std::uint64_t* const row = conflicts.row(item);
  for (std::size_t w = 0; w < conflicting_.size(); ++w) conflicting_[w] = row[w] & placed_[w];
  if (moves_ == moved_.size()) moved_.emplace_back();
  Moved& moved = moved_[moves_++];
  moved.item = item;
  Placement& now = moved.place;
  now.at.clear();
  now.top = 0;
  now.below = kGround;
  const Placement& before = placements_[item];
  if (shape.places == 1 && before.at.size() == 1) {
    const std::uint64_t at = lowest(shape, now.below);
    now.at.push_back(at);
    now.top = at + shape.bytes;
    if (at != before.at[0]) {
      new_taken_.erase(before.at[0], item);
      new_taken_.insert(at, at + shape.bytes, item);
    }
  } else {
    for (const std::uint64_t at : before.at) new_taken_.erase(at, item);
    add(conflicting_, item);
    for (std::uint32_t turn = 0; turn < shape.places; ++turn) {
      std::uint32_t under = kGround;
      const std::uint64_t at = lowest(shape, under);
      if (under != item) now.below = under;
      new_taken_.insert(at, at + shape.bytes, item);
      now.at.push_back(at);
      now.top = std::max(now.top, at + shape.bytes);
    }
  }
  if (now.at == before.at) return;
  for (std::size_t w = 0; w < dirty_.size(); ++w) dirty_[w] |= row[w];
}

// Where none of those in near_ lies.
std::uint64_t Packing::lowest(const Shape& shape, std::uint32_t& below) const {
  const std::uint64_t alignment = shape.alignment;
  const bool masks = std::has_single_bit(alignment);  // a division is dear here
  const auto up = [&](std::uint64_t offset) {
    const std::uint64_t last = offset + alignment - 1;
    return masks ? last & ~(alignment - 1) : last / alignment * alignment;
  };
  const std::uint64_t *const from = new_taken_.from.data(), *const to = new_taken_.to.data();
  const std::uint32_t* const item = new_taken_.item.data();
  const std::uint64_t* const conflicting = conflicting_.data();
  const std::size_t count = new_taken_.from.size();
  std::uint64_t at = 0, end = shape.bytes;
  for (std::size_t s = 0; s < count && from[s] < end; ++s) {
    const std::uint32_t other = item[s];
    // Not &&: whether two conflict is not predictable.
    if ((static_cast<std::uint64_t>(to[s] > at) & (conflicting[other / 64] >> (other % 64))) != 0) {
      at = up(to[s]);
      end = at + shape.bytes;
      below = other;
    }
  }
  return at;
}

void Packing::keep() {
  std::swap(taken_, new_taken_);
  std::swap(rank_, new_rank_);
  order_.resize(rank_.size());
  for (std::uint32_t i = 0; i < rank_.size(); ++i) order_[rank_[i]] = i;
  for (std::size_t k = 0; k < moves_; ++k) {
    std::swap(placements_[moved_[k].item], moved_[k].place);
  }
  moves_ = 0;
}

}  // namespace memopt::swap
