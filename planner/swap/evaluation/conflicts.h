// Which items are on the device at the same time, and so must not share bytes: the conflict graph of first fit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/swap/evaluation/residency_intervals.h"

namespace memopt::swap {

// Of items, as bits.
using ItemSet = std::vector<std::uint64_t>;

inline bool has(const std::uint64_t* set, std::uint32_t item) { return ((set[item / 64] >> (item % 64)) & 1) != 0; }
inline void add(ItemSet& set, std::uint32_t item) { set[item / 64] |= std::uint64_t{1} << (item % 64); }

class Conflicts {
 public:
  Conflicts() = default;
  // Later an item may be away for a part of these intervals, and is never resident outside them.
  explicit Conflicts(const std::vector<ItemResidency>& whole);

  std::size_t words() const { return words_; }
  // The conflicts of an item, itself included. words() words.
  const std::uint64_t* row(std::uint32_t item) const { return &rows_[item * words_]; }

  // `residencies` holds another residency of this item than before; `before` gets the row that it had.
  void update(std::uint32_t item, const std::vector<ItemResidency>& residencies, ItemSet& before);
  // The row becomes what it was, the last update() first. Residencies do not matter here.
  void restore(std::uint32_t item, ItemSet& before) { exchange(item, before); }

 private:
  void exchange(std::uint32_t item, ItemSet& row);

  std::size_t words_ = 0;
  std::vector<std::uint64_t> could_, rows_;
};

}  // namespace memopt::swap
