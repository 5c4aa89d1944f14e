// Repeats at the end of a sequence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/iteration/lane_operations.h"

namespace memopt::planner {

// For each p from 0 to the length: how many elements before the end equal those p further back, counted from the end
// until the first difference. The last 2p elements are two equal halves if result[p] >= p. This is the Z function of
// the reversed sequence (Gusfield 1997, section 1.4), O(length).
inline std::vector<std::uint32_t> repeats_at_end(std::span<const std::uint64_t> sequence) {
  const auto n = static_cast<std::uint32_t>(sequence.size());
  std::vector<std::uint32_t> z(std::size_t{n} + 1, 0);
  if (n == 0) return z;
  z[0] = n;
  const auto at = [&](std::uint32_t i) { return sequence[n - 1 - i]; };
  std::uint32_t left = 0, right = 0;
  for (std::uint32_t i = 1; i < n; ++i) {
    std::uint32_t length = 0;
    if (i < right) length = z[i - left] < right - i ? z[i - left] : right - i;
    while (i + length < n && at(length) == at(i + length)) ++length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    z[i] = length;
  }
  return z;
}

// Whether the lane's last `count` operations may end in two equal parts that are longer than `longer_than` (up to half
// of them): false only if they do not. Where nothing repeats this costs a small part of what repeats_at_end() does,
// since it only looks for the last token. Memory-bound; gives up with "perhaps" after about `count` comparisons.
inline bool may_repeat(const LaneOperations& operations, std::size_t count, std::uint32_t longer_than) {
  const std::size_t size = operations.size();
  count = std::min(count, size);
  if (count / 2 <= longer_than) return false;
  const std::size_t last = size - 1;
  const std::uint64_t token = operations.token(last);
  std::size_t work = 0;
  // A part is as long as its last token is away from that of the other.
  for (std::size_t end = size - 1 - longer_than;;) {
    const std::size_t at = operations.find_last(token, last - count / 2, end);
    if (at == end) return false;
    const std::size_t part = last - at;
    std::size_t equal = 1;
    while (equal < part && operations.token(last - equal) == operations.token(at - equal)) ++equal;
    work += equal;
    if (equal == part || work > count) return true;
    end = at;
  }
}

}  // namespace memopt::planner
