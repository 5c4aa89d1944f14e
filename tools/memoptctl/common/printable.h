// Text from other processes, made fit for a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace memopt::tools {

// `text` as valid UTF-8 without control characters, escape sequences or characters that reorder a line; what is taken
// out becomes
// '?'. At most `max_characters`; a longer text ends in "…".
std::string printable(std::string_view text, std::size_t max_characters = 200);

// Characters (not bytes) of a text that `printable` returned: its width in a table.
std::size_t width(std::string_view printable_text);

// 1536 -> "1.5 KiB".
std::string bytes_text(double bytes);

}  // namespace memopt::tools
