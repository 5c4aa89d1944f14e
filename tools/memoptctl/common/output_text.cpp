#include "tools/memoptctl/common/output_text.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw std::runtime_error(printable(path) + ": cannot be written: " + std::strerror(error));
}

}  // namespace

void expect_writable(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail(path, EISDIR);
  if (::access(path.c_str(), W_OK) == 0) return;
  if (errno != ENOENT) fail(path, errno);
  const std::string folder = std::filesystem::path(path).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) fail(path, errno);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(path, errno);
}

}  // namespace memopt::tools
