#include "tools/memoptctl/common/printable.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace memopt::tools {
namespace {

struct Decoded {
  std::uint32_t code = 0;
  std::size_t length = 0;  // 0: not valid UTF-8
};

Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 && first <= 0xF4   ? 4
                             : first >= 0xE0 && first < 0xF0  ? 3
                             : first >= 0xC2 && first <= 0xDF ? 2
                                                              : 0;
  if (length == 0 || text.size() < length) return {};
  std::uint32_t code = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

bool harmless(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code <= 0x9F)) return false;                             // C0, DEL, C1
  if (code == 0x200E || code == 0x200F || code == 0x61C) return false;                         // direction marks
  if ((code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069)) return false;  // line breaks, overrides
  return code != 0xFEFF;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_characters) {
  std::string out;
  std::size_t characters = 0;
  while (!text.empty()) {
    if (characters == max_characters) {
      // The last character gives way to the mark that something was cut.
      while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
      if (!out.empty()) out.pop_back();
      out += "…";
      break;
    }
    const Decoded next = decode(text);
    if (next.length != 0 && harmless(next.code)) {
      out.append(text.substr(0, next.length));
    } else {
      out += '?';
    }
    text.remove_prefix(next.length == 0 ? 1 : next.length);
    ++characters;
  }
  return out;
}

std::size_t width(std::string_view printable_text) {
  std::size_t characters = 0;
  for (const char c : printable_text) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return characters;
}

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace memopt::tools
