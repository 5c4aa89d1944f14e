#include "tools/memoptctl/run/options_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "shm/options.h"

namespace memopt::tools {

int options(bool markdown) {
  if (markdown) {
    fmt::print("| variable | values | default | meaning |\n|---|---|---|---|\n");
    for (const shm::Option& option : shm::kOptions) {
      fmt::print("| `{}` | {} | {} | {} |\n", option.name, option.values,
                 option.default_value.empty() ? "none" : fmt::format("`{}`", option.default_value), option.help);
    }
    return 0;
  }
  std::size_t name_width = 0;
  for (const shm::Option& option : shm::kOptions) name_width = std::max(name_width, option.name.size());
  for (const shm::Option& option : shm::kOptions) {
    fmt::print("{:{}}  {}\n{:{}}  {}; default: {}\n", option.name, name_width, option.help, "", name_width,
               option.values, option.default_value.empty() ? "none" : option.default_value);
  }
  return 0;
}

}  // namespace memopt::tools
