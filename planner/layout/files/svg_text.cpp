#include "planner/layout/files/svg_text.h"

#include <array>
#include <cstdio>

namespace memopt::layout {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f ? '?' : c;
    }
  }
  return out;
}

std::string coordinate(double pixels) {
  std::array<char, 32> text{};
  int length = std::snprintf(text.data(), text.size(), "%.1f", pixels);
  if (length >= 2 && text[static_cast<std::size_t>(length) - 1] == '0') length -= 2;
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace memopt::layout
