#include "tools/memoptctl/common/partial_file.h"

#include <stdexcept>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {

void expect_replaceable(const std::string& path, bool force) {
  if (!force && std::filesystem::exists(path)) {
    throw std::runtime_error(printable(path) + ": is there already (--force overwrites it)");
  }
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
    throw std::runtime_error(printable(path) + ": cannot be written: expected a file, or nothing there yet");
  }
}

}  // namespace memopt::tools
