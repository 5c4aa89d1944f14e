// Texts and numbers that are fit for a drawing (SVG).
#pragma once

#include <string>
#include <string_view>

namespace memopt::layout {

// Text for a document: marks escaped. Control characters and what is not ASCII are replaced: neither these nor halves
// of a cut character are allowed there.
std::string escaped(std::string_view text);

// Tenths of a pixel, without zeros that say nothing.
std::string coordinate(double pixels);

}  // namespace memopt::layout
