// A piece of a file in a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace memopt::input {

// `text` with '?' for all that is not printable ASCII, which a terminal might execute; a long one is cut, and ends in
// "...".
std::string shown(std::string_view text, std::size_t longest = 60);

}  // namespace memopt::input
