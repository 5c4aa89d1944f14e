// Files that a command writes at its end.
#pragma once

#include <string>

namespace memopt::tools {

// Throws std::runtime_error that names the path, before work is done whose result could not be written then. An empty
// path is none.
void expect_writable(const std::string& path);

// The same where it can't be written after all.
void write_text(const std::string& path, const std::string& text);

}  // namespace memopt::tools
