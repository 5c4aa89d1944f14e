#include "tools/memoptctl/common/optional_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

#include "tools/memoptctl/common/install_paths.h"

namespace memopt::tools {

OptionalModule load_optional_module(const char* file, const char* version, const char* run) {
  const auto path = find_beside_library(file);
  if (!path) return {nullptr, fmt::format("{} was not found", file)};
  void* const module = ::dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return {nullptr, ::dlerror()};
  void* const found = ::dlsym(module, run);
  const auto* const its = static_cast<const char*>(::dlsym(module, version));
  if (found == nullptr || its == nullptr || std::string_view(its) != MEMOPT_VERSION) {
    return {nullptr, path->string() + " is of another version"};
  }
  return {found, {}};
}

}  // namespace memopt::tools
