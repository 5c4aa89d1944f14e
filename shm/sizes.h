// Sizes as people write them, in options and on command lines: "8GiB", "1.5G", "500MiB", "1048576", "512B"; and limits,
// which may also be a part of the device: "60%".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "shm/decimal.h"

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

// Takes the unit off the end: K, M, G or T, each with or without iB, or B behind a digit. GB is refused: some mean 10^9
// by it.
constexpr std::uint64_t take_unit(std::string_view& text) {
  constexpr std::string_view kUnits = "KMGT";
  std::string_view rest = text;
  if (rest.size() > 1 && rest.back() == 'B' && is_digit(rest[rest.size() - 2])) {
    text.remove_suffix(1);
    return 1;
  }
  if (rest.ends_with("iB")) rest.remove_suffix(2);
  const std::size_t power = rest.empty() ? std::string_view::npos : kUnits.find(rest.back());
  if (power == std::string_view::npos) return 1;
  rest.remove_suffix(1);
  text = rest;
  return std::uint64_t{1} << (10 * (power + 1));
}

}  // namespace size_detail

// Bytes, 0 to 2^62, rounded down to whole ones. Nothing where the text is no size; a part of a byte is none.
constexpr std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const std::uint64_t unit = size_detail::take_unit(text);
  if (unit == 1 && text.find('.') != std::string_view::npos) return std::nullopt;
  return scaled(text, unit);
}

// "12.5%": millionths of a percent, which may be more than a hundred. Nothing where the text is no percentage.
constexpr std::optional<std::uint64_t> parse_part(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  return scaled(text, size_detail::kPercent);
}

// Of `whole`, rounded down; nothing where it would be more than 2^62.
constexpr std::optional<std::uint64_t> part_of(std::uint64_t part, std::uint64_t whole) {
  const auto bytes = static_cast<unsigned __int128>(whole) * part / size_detail::kAll;
  return bytes <= kMostScaled ? std::optional(static_cast<std::uint64_t>(bytes)) : std::nullopt;
}

constexpr ParsedSize parse_size(std::string_view text) {
  const std::optional<std::uint64_t> bytes = parse_bytes(text);
  if (!bytes || *bytes == 0) return {};
  return {.valid = true, .percent = false, .whole = *bytes};
}

constexpr ParsedSize parse_limit(std::string_view text) {
  if (!text.ends_with('%')) return parse_size(text);
  const std::optional<std::uint64_t> part = parse_part(text);
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
