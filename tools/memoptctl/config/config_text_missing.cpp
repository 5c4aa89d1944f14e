#include <fmt/format.h>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/config/config_file.h"

namespace memopt::tools {

std::vector<FileSetting> parse_config(std::string_view, const std::filesystem::path& path, ConfigScope) {
  throw ConfigError(fmt::format(
      "{}: this memoptctl was built without toml++ (Debian: libtomlplusplus-dev) and can't read it; --no-config goes "
      "without files",
      printable(path.string())));
}

}  // namespace memopt::tools
