// Internal to the room: which items are on the device at the same time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/swap/search/stays.h"

namespace memopt::swap {

// Of items, as bits.
using ItemSet = std::vector<std::uint64_t>;

inline bool has(const std::uint64_t* set, std::uint32_t item) { return ((set[item / 64] >> (item % 64)) & 1) != 0; }
inline void add(ItemSet& set, std::uint32_t item) { set[item / 64] |= std::uint64_t{1} << (item % 64); }

class Meetings {
 public:
  Meetings() = default;
  // An item may be away for a part of these stays later, and never be there when it is not in them.
  explicit Meetings(const std::vector<Stay>& whole);

  std::size_t words() const { return words_; }
  // Whom an item meets; itself, too. words() words.
  const std::uint64_t* row(std::uint32_t item) const { return &rows_[item * words_]; }

  // `stays` holds another stay of this item than before; `before` gets the row that it had.
  void update(std::uint32_t item, const std::vector<Stay>& stays, ItemSet& before);
  // The row becomes what it was, the last update() first. Stays do not matter here.
  void restore(std::uint32_t item, ItemSet& before) { exchange(item, before); }

 private:
  void exchange(std::uint32_t item, ItemSet& row);

  std::size_t words_ = 0;
  std::vector<std::uint64_t> could_, rows_;
};

}  // namespace memopt::swap
