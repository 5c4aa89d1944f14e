// What MEMOPT_PIN says: "size>=64MiB", "frame=REGEX", or both, "size>=64MiB|frame=REGEX"; a block that fits either
// stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "shm/sizes.h"

namespace memopt::shm {

inline constexpr std::string_view kPinValues = "size>=SIZE, frame=REGEX, or both with a bar between";

struct PinTerms {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t least_bytes = kNone;
  std::string_view frame;  // empty: none
};

// Nothing where the text says something else. Whether it is a regular expression is not looked at.
constexpr std::optional<PinTerms> pin_terms(std::string_view text) {
  constexpr std::string_view kSize = "size>=", kFrame = "frame=";
  PinTerms terms;
  if (text.starts_with(kSize)) {
    const std::size_t end = text.find('|');
    const std::string_view size = text.substr(kSize.size(), end == std::string_view::npos ? end : end - kSize.size());
    if (!is_size(size)) return std::nullopt;
    terms.least_bytes = size_bytes(size);
    if (end == std::string_view::npos) return terms;
    text.remove_prefix(end + 1);
  }
  if (!text.starts_with(kFrame) || text.size() == kFrame.size()) return std::nullopt;
  terms.frame = text.substr(kFrame.size());
  return terms;
}

constexpr bool is_pin(std::string_view text) { return pin_terms(text).has_value(); }

}  // namespace memopt::shm
