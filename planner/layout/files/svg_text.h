// Texts and numbers as SVG.
#pragma once

#include <string>
#include <string_view>

namespace memopt::layout {

// Text with XML's special characters escaped. Control characters and all outside ASCII are replaced: XML allows neither
// control characters nor parts of a multi-byte character.
std::string escaped(std::string_view text);

// A number of pixels to one decimal, without trailing zeros.
std::string coordinate(double pixels);

}  // namespace memopt::layout
