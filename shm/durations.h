// Durations as people write them, in options and on command lines: "500ms", "60s", "1.5min", "2h". A number without a
// unit is taken in the unit that the option documents.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "shm/decimal.h"

namespace memopt::shm {

struct DurationUnit {
  std::string_view name;
  std::uint64_t nanoseconds;
};

inline constexpr std::uint64_t kOneSecond = 1'000'000'000;  // in nanoseconds, as all here

// "min", not "m", which some read as milli. The longest first, as the end of one may be another.
inline constexpr std::array<DurationUnit, 6> kDurationUnits{{
    {"min", 60 * kOneSecond},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
    {"s", kOneSecond},
    {"h", 3600 * kOneSecond},
}};

// Nanoseconds, 0 to 2^62, rounded down; nothing where the text is no duration. `plain`: nanoseconds of the unit of a
// number that has none; 0: such a number is no duration.
constexpr std::optional<std::uint64_t> parse_duration(std::string_view text, std::uint64_t plain) {
  for (const DurationUnit& unit : kDurationUnits) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    return scaled(text, unit.nanoseconds);
  }
  return plain == 0 ? std::nullopt : scaled(text, plain);
}

}  // namespace memopt::shm
