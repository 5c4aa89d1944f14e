#include "tools/memoptctl/common/install_paths.h"

#include <system_error>

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> first_with(const fs::path& relative, const fs::path& built, const char* file) {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  for (const fs::path& folder : {self.parent_path().parent_path() / relative, built}) {
    const fs::path resolved = fs::weakly_canonical(folder, ignored);
    if (resolved.is_absolute() && fs::is_regular_file(resolved / file, ignored)) return resolved;
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> find_beside_library(const char* file) {
  const fs::path built = MEMOPT_BUILD_LIBRARY;
  auto folder = first_with("lib", built.parent_path(), file);
  if (folder) *folder /= file;
  return folder;
}

std::optional<fs::path> find_library() { return find_beside_library("libmemopt.so"); }

std::optional<fs::path> find_simulator_folder() {
  return first_with("cudasim/lib", MEMOPT_BUILD_SIMULATOR, "libcuda.so.1");
}

std::string own_program() {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  return ignored ? "/proc/self/exe" : self.string();
}

}  // namespace memopt::tools
