// Completions of a program's line, for a shell to read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/memoptctl/description/command_tree.h"

namespace memopt::tools {

inline constexpr const char* kShells = "bash, zsh or fish";

// Nothing for another shell. `devices`: what --sim takes beside a file.
std::optional<std::string> completion(const CommandTree& tree, std::string_view shell,
                                      const std::vector<std::string>& devices);

}  // namespace memopt::tools
