// Decimal numbers with a unit behind them, for sizes.h and durations.h: exact, without floating point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memopt::shm {

inline constexpr std::uint64_t kMostScaled = std::uint64_t{1} << 62;
inline constexpr std::size_t kMostDecimals = 6;  // so that a percentage is exact, and no product overflows

constexpr bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// A decimal number times `unit` (2^42 at most), rounded down; nothing where the text is not one, or the product is more
// than kMostScaled. No sign, no exponent, no blanks.
constexpr std::optional<std::uint64_t> scaled(std::string_view number, std::uint64_t unit) {
  std::uint64_t whole = 0;
  std::size_t i = 0;
  for (; i < number.size() && is_digit(number[i]); ++i) {
    const auto digit = static_cast<std::uint64_t>(number[i] - '0');
    if (digit > kMostScaled / unit || whole > (kMostScaled / unit - digit) / 10) return std::nullopt;
    whole = whole * 10 + digit;
  }
  if (i == 0) return std::nullopt;
  if (i == number.size()) return whole * unit;
  const std::string_view decimals = number.substr(i + 1);
  if (number[i] != '.' || decimals.empty() || decimals.size() > kMostDecimals) return std::nullopt;
  std::uint64_t part = 0;
  std::uint64_t of = 1;
  for (const char letter : decimals) {
    if (!is_digit(letter)) return std::nullopt;
    part = part * 10 + static_cast<std::uint64_t>(letter - '0');
    of *= 10;
  }
  const std::uint64_t sum = whole * unit + unit * part / of;
  return sum <= kMostScaled ? std::optional(sum) : std::nullopt;
}

}  // namespace memopt::shm
