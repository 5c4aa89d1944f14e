// Internal to planner/layout/local_search: a set of small numbers, with the next member above and below a number.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace memopt::layout {

// A hierarchical bitset: words of 64 bits, above them a bit for each word that is not empty, and so on up to one word.
// Every operation is O(log n) to the base of 64.
class HierarchicalBitset {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Of numbers below `end`; empty.
  explicit HierarchicalBitset(std::uint32_t end) {
    std::size_t words = std::max(end, 1U);
    do {
      words = (words + 63) / 64;
      levels_.emplace_back(words, 0);
    } while (words > 1);
  }

  bool contains(std::uint32_t number) const { return (levels_[0][number / 64] >> (number % 64) & 1) != 0; }

  void insert(std::uint32_t number) {
    for (auto& level : levels_) {
      level[number / 64] |= std::uint64_t{1} << (number % 64);
      number /= 64;
    }
  }

  void erase(std::uint32_t number) {
    for (auto& level : levels_) {
      if ((level[number / 64] &= ~(std::uint64_t{1} << (number % 64))) != 0) return;
      number /= 64;
    }
  }

  // The smallest member, or kNone.
  std::uint32_t first() const { return contains(0) ? 0 : above(0); }

  // The largest member below `number`, or kNone.
  std::uint32_t below(std::uint32_t number) const {
    for (std::size_t i = 0; i < levels_.size(); ++i, number /= 64) {
      const std::uint64_t word = levels_[i][number / 64] & ((std::uint64_t{1} << (number % 64)) - 1);
      if (word == 0) continue;
      number = number / 64 * 64 + static_cast<std::uint32_t>(std::bit_width(word)) - 1;
      while (i-- > 0) number = number * 64 + static_cast<std::uint32_t>(std::bit_width(levels_[i][number])) - 1;
      return number;
    }
    return kNone;
  }

  // The smallest member above `number`, or kNone.
  std::uint32_t above(std::uint32_t number) const {
    for (std::size_t i = 0; i < levels_.size(); ++i, number /= 64) {
      const std::uint64_t word = levels_[i][number / 64] & ~std::uint64_t{1} << (number % 64);
      if (word == 0) continue;
      number = number / 64 * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
      while (i-- > 0) number = number * 64 + static_cast<std::uint32_t>(std::countr_zero(levels_[i][number]));
      return number;
    }
    return kNone;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace memopt::layout
