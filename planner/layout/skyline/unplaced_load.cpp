#include "planner/layout/skyline/unplaced_load.h"

#include <algorithm>
#include <bit>

namespace memopt::layout {

void UnplacedLoad::fill(const std::vector<std::uint64_t>& load) {
  leaves_ = std::bit_ceil(std::max(1u, static_cast<std::uint32_t>(load.size())));
  largest_.assign(2 * leaves_, 0);
  subtracted_.assign(2 * leaves_, 0);
  std::copy(load.begin(), load.end(), largest_.begin() + leaves_);
  for (std::uint32_t i = leaves_ - 1; i > 0; --i) largest_[i] = std::max(largest_[2 * i], largest_[2 * i + 1]);
}

void UnplacedLoad::subtract(std::uint32_t lo, std::uint32_t hi, std::uint64_t bytes) {
  std::uint32_t left = lo + leaves_;
  std::uint32_t right = hi + leaves_;
  for (; left < right; left /= 2, right /= 2) {
    if ((left & 1) != 0) subtracted_[left++] += bytes;
    if ((right & 1) != 0) subtracted_[--right] += bytes;
  }
  std::uint32_t first = (lo + leaves_) / 2;
  std::uint32_t last = (hi - 1 + leaves_) / 2;
  for (; first != last; first /= 2, last /= 2) {
    refresh(first);
    refresh(last);
  }
  for (; first > 0; first /= 2) refresh(first);
}

std::uint64_t UnplacedLoad::maximum(std::uint32_t lo, std::uint32_t hi) const {
  // Climbs from both ends; what was subtracted from a node counts for all below it.
  std::uint32_t left = lo + leaves_;
  std::uint32_t right = hi - 1 + leaves_;
  std::uint64_t from_left = of_node(left);
  std::uint64_t from_right = of_node(right);
  while (left / 2 != right / 2 && left != right) {
    if ((left & 1) == 0) from_left = std::max(from_left, of_node(left + 1));
    if ((right & 1) != 0) from_right = std::max(from_right, of_node(right - 1));
    left /= 2;
    right /= 2;
    from_left -= subtracted_[left];
    from_right -= subtracted_[right];
  }
  std::uint64_t result = std::max(from_left, from_right);
  for (left /= 2; left > 0; left /= 2) result -= subtracted_[left];
  return result;
}

std::uint32_t UnplacedLoad::argmax(std::uint32_t lo, std::uint32_t hi, std::uint64_t maximum_of_range) const {
  while (hi - lo > 1) {
    const std::uint32_t middle = lo + (hi - lo) / 2;
    if (maximum(lo, middle) == maximum_of_range) {
      hi = middle;
    } else {
      lo = middle;
    }
  }
  return lo;
}

}  // namespace memopt::layout
