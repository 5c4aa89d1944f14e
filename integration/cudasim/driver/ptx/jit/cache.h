// Compiled functions on disk, a file for each.
//
// A file holds the description of what was compiled and its object code, and is used only where the description is the
// same to the byte; what is damaged, or another user's, is ignored. Files are written beside and renamed, so that any
// number of processes may share a folder. Beyond kMostBytes the oldest are removed.
#pragma once
#include <cstdint>
#include <string>

namespace cudasim::ptx::jit {

class Cache {
 public:
  static constexpr std::uint64_t kMostBytes = 256 << 20;

  // Of a folder, made when something is kept; empty: keeps nothing.
  explicit Cache(std::string folder, std::uint64_t most_bytes = kMostBytes);

  // The object code; empty where there is none.
  std::string find(const std::string& description) const;
  // Does nothing where the folder can't be written.
  void keep(const std::string& description, const std::string& object) const;

 private:
  std::string path_of(const std::string& description) const;
  void trim() const;

  std::string folder_;
  std::uint64_t most_bytes_;
};

// For names; files are told apart by their contents.
std::uint64_t hash_of(const std::string& bytes);

}  // namespace cudasim::ptx::jit
