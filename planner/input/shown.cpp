#include "planner/input/shown.h"

#include <algorithm>

namespace memopt::input {

std::string shown(std::string_view text, std::size_t longest) {
  std::string shown(text.substr(0, longest));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text.size() > longest ? shown + "..." : shown;
}

}  // namespace memopt::input
