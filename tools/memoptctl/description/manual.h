// The manual page of a program with all its commands, as man(7) has it.
#pragma once

#include <string>

#include "tools/memoptctl/description/command_tree.h"

namespace memopt::tools {

std::string manual(const CommandTree& tree);

}  // namespace memopt::tools
