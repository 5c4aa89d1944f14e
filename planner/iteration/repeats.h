// Repeats at the end of a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace memopt::planner
