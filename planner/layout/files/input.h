// Whole files, unpacked if they are gzip's.
#pragma once

#include <string>

namespace memopt::layout {

// The content of the file, or of standard input for "-"; unpacked if it is gzip's (by content, not by name). Throws
// std::runtime_error that names the file.
std::string read_input(const std::string& path);

}  // namespace memopt::layout
