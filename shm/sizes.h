// Sizes as people write them, in options and on command lines: "8GiB", "1.5G", "500MiB", "1048576"; and limits, which
// may also be a part of the device: "60%".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memopt::shm {

// What a text is told to be where it is not accepted.
inline constexpr std::string_view kSizeValues = "a size in bytes, or with K, M, G or T (8GiB, 500M)";
inline constexpr std::string_view kLimitValues = "a size (8GiB, 500M) or a part of the device (60%)";

// Of a limit that is set while a program runs: it can be taken away, too.
inline constexpr std::string_view kNewLimitValues = "a size (8GiB, 500M), a part of the device (60%), or none";
inline constexpr std::string_view kNoLimit = "none";
inline constexpr std::size_t kLongestLimit = 40;  // letters

struct ParsedSize {
  bool valid = false;
  bool percent = false;
  std::uint64_t whole = 0;  // bytes; or millionths of a percent
};

namespace size_detail {

inline constexpr std::uint64_t kPercent = 1'000'000;  // in the unit of ParsedSize::whole
inline constexpr std::uint64_t kAll = 100 * kPercent;
inline constexpr std::size_t kMostDecimals = 6;  // so that a percentage is exact, and no product overflows

constexpr bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// A decimal number times `unit` (2^40 at most), rounded down; nothing where the text is not one, or the product is more
// than 2^62. No sign, no exponent, no blanks.
constexpr std::optional<std::uint64_t> scaled(std::string_view number, std::uint64_t unit) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::uint64_t whole = 0;
  std::size_t i = 0;
  for (; i < number.size() && is_digit(number[i]); ++i) {
    const auto digit = static_cast<std::uint64_t>(number[i] - '0');
    if (whole > (kMost / unit - digit) / 10) return std::nullopt;
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
  return sum <= kMost ? std::optional(sum) : std::nullopt;
}

// Takes the unit off the end: K, M, G or T, each with or without iB. GB is refused: some mean 10^9 by it.
constexpr std::uint64_t take_unit(std::string_view& text) {
  constexpr std::string_view kUnits = "KMGT";
  std::string_view rest = text;
  if (rest.ends_with("iB")) rest.remove_suffix(2);
  const std::size_t power = rest.empty() ? std::string_view::npos : kUnits.find(rest.back());
  if (power == std::string_view::npos) return 1;
  rest.remove_suffix(1);
  text = rest;
  return std::uint64_t{1} << (10 * (power + 1));
}

}  // namespace size_detail

constexpr ParsedSize parse_size(std::string_view text) {
  const std::uint64_t unit = size_detail::take_unit(text);
  // A part of a byte is none.
  if (unit == 1 && text.find('.') != std::string_view::npos) return {};
  const std::optional<std::uint64_t> bytes = size_detail::scaled(text, unit);
  if (!bytes || *bytes == 0) return {};
  return {.valid = true, .percent = false, .whole = *bytes};
}

constexpr ParsedSize parse_limit(std::string_view text) {
  if (!text.ends_with('%')) return parse_size(text);
  text.remove_suffix(1);
  const std::optional<std::uint64_t> part = size_detail::scaled(text, size_detail::kPercent);
  if (!part || *part == 0 || *part > size_detail::kAll) return {};
  return {.valid = true, .percent = true, .whole = *part};
}

constexpr bool is_size(std::string_view text) { return parse_size(text).valid; }
constexpr bool is_limit(std::string_view text) { return parse_limit(text).valid; }

constexpr bool is_new_limit(std::string_view text) {
  return text == kNoLimit || (text.size() <= kLongestLimit && is_limit(text));
}

// 0 where the text is not accepted.
constexpr std::uint64_t size_bytes(std::string_view text) { return parse_size(text).whole; }

// The same; `total` is the device's memory, of which a percentage is taken, rounded down.
constexpr std::uint64_t limit_bytes(std::string_view text, std::uint64_t total) {
  using size_detail::kAll;
  const ParsedSize parsed = parse_limit(text);
  if (!parsed.percent) return parsed.whole;
  return total / kAll * parsed.whole + total % kAll * parsed.whole / kAll;
}

}  // namespace memopt::shm
