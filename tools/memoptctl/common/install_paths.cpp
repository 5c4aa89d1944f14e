#include "tools/memoptctl/common/install_paths.h"

#include <initializer_list>
#include <system_error>

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;

// The first of the folders, as seen from the one above this binary's, in which the file is.
std::optional<fs::path> first_with(std::initializer_list<const char*> relative, const fs::path& built,
                                   const char* file) {
  std::error_code ignored;
  const fs::path above = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  const auto has = [&](const fs::path& folder) -> std::optional<fs::path> {
    const fs::path resolved = fs::weakly_canonical(folder, ignored);
    if (resolved.is_absolute() && fs::is_regular_file(resolved / file, ignored)) return resolved;
    return std::nullopt;
  };
  for (const char* const folder : relative) {
    if (auto found = has(above / folder)) return found;
  }
  return has(built);
}

}  // namespace

std::optional<fs::path> find_beside_library(const char* file) {
  const fs::path built = MEMOPT_BUILD_LIBRARY;
  auto folder =
      first_with({"lib", "lib/memopt", MEMOPT_MULTIARCH, MEMOPT_MULTIARCH "/memopt"}, built.parent_path(), file);
  if (folder) *folder /= file;
  return folder;
}

std::optional<fs::path> find_library() { return find_beside_library("libmemopt.so"); }

std::optional<fs::path> find_simulator_folder() {
  return first_with({"cudasim/lib", "lib/memopt/cudasim/lib", MEMOPT_MULTIARCH "/memopt/cudasim/lib"},
                    MEMOPT_BUILD_SIMULATOR, "libcuda.so.1");
}

bool is_library_name(std::string_view file) {
  constexpr std::string_view kName = "libmemopt.so";
  if (!file.starts_with(kName)) return false;
  file.remove_prefix(kName.size());
  return file.empty() || (file[0] == '.' && file.find_first_not_of(".0123456789") == std::string_view::npos);
}

std::string own_program() {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  return ignored ? "/proc/self/exe" : self.string();
}

}  // namespace memopt::tools
