#include "tools/memoptctl/top/terminal.h"

namespace memopt::tools {

std::unique_ptr<Terminal> open_terminal(std::string* why) {
  *why = "this memoptctl was built without ncurses (Debian: libncurses-dev)";
  return nullptr;
}

}  // namespace memopt::tools
