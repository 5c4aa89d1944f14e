#include "tools/memoptctl/main/commands.h"

namespace memopt::tools {

bool has_command(std::string_view) { return true; }

}  // namespace memopt::tools
