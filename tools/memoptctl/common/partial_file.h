// A file that takes its name when it is whole.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace memopt::tools {

// PATH.partial, gone again unless it was kept.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) : path_(path + ".partial"), whole_(path) { remove(); }
  ~PartialFile() { remove(); }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::string& path() const { return path_; }
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  // Throws std::filesystem::filesystem_error.
  void keep() const { std::filesystem::rename(path_, whole_); }

 private:
  std::string path_;
  std::string whole_;
};

// Before a recording takes the place of what is at `path`. Throws std::runtime_error that names it: there is something,
// and not `force`, or it is no file (a device must stay).
void expect_replaceable(const std::string& path, bool force);

}  // namespace memopt::tools
