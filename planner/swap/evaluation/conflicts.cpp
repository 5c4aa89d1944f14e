#include "planner/swap/evaluation/conflicts.h"

#include <utility>

namespace memopt::swap {

Conflicts::Conflicts(const std::vector<ItemResidency>& whole) : words_((whole.size() + 63) / 64) {
  const auto count = static_cast<std::uint32_t>(whole.size());
  rows_.resize(count * words_);
  for (std::uint32_t a = 0; a < count; ++a) {
    for (std::uint32_t b = a; b < count; ++b) {
      if (a != b && !conflict(whole[a], whole[b])) continue;
      rows_[a * words_ + b / 64] |= std::uint64_t{1} << (b % 64);
      rows_[b * words_ + a / 64] |= std::uint64_t{1} << (a % 64);
    }
  }
  could_ = rows_;
}

void Conflicts::update(std::uint32_t item, const std::vector<ItemResidency>& residencies, ItemSet& before) {
  const ItemResidency& residency = residencies[item];
  const std::uint64_t* const could = &could_[item * words_];
  before.resize(words_);
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t conflicting = 0;
    for (std::uint64_t left = could[w]; left != 0; left &= left - 1) {
      const std::size_t other = w * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if (other == item || conflict(residency, residencies[other])) conflicting |= left & -left;
    }
    before[w] = conflicting;
  }
  exchange(item, before);
}

// What is in `row` becomes what rows_ says, and the other way round.
void Conflicts::exchange(std::uint32_t item, ItemSet& row) {
  const std::uint64_t bit = std::uint64_t{1} << (item % 64);
  std::uint64_t* const now = &rows_[item * words_];
  for (std::size_t w = 0; w < words_; ++w) {
    for (std::uint64_t left = row[w] ^ now[w]; left != 0; left &= left - 1) {
      rows_[(w * 64 + static_cast<std::size_t>(std::countr_zero(left))) * words_ + item / 64] ^= bit;
    }
    std::swap(row[w], now[w]);
  }
}

}  // namespace memopt::swap
