// The line of memoptctl: reads it, and runs the command that it names.
#pragma once

#include <span>
#include <string_view>

namespace memopt::tools {

// The exit code. `missing`: commands of which this program has no code (CMakeLists.txt); the line that names one is
// refused before any of it is reached.
int run_line(int argc, char** argv, std::span<const std::string_view> missing);

}  // namespace memopt::tools
