// Which commands this program has: all, or those that `memoptctl_running` is made of (CMakeLists.txt).
#pragma once

#include <string_view>

namespace memopt::tools {

bool has_command(std::string_view name);

}  // namespace memopt::tools
