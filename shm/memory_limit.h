// How much host memory a process may still take before a limit of its control group (a container's, a batch system's)
// ends it: beyond that limit the kernel does not refuse memory but kills, and the process killed may be the program.
// Likewise before it is slowed down: beyond memory.high each page waits until others have been taken back.
// Both versions of control groups, all groups above the process's own. What files have in the page cache counts as
// free, since the kernel takes it back.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/sealed_memory.h"

namespace memopt::shm {

struct MemoryLeft {
  std::uint64_t bytes = ~std::uint64_t{0};
  // Of the group that leaves least; the file is empty where there is no limit.
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
  std::string file;
};

namespace memory_limit_detail {

// The whole of a small file; empty if it can't be read.
inline std::string read_file(const std::string& name) {
  const Descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  while (file) {
    const ssize_t got = read(file.get(), part, sizeof(part));
    if (got <= 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

// Nothing for "max" and whatever is no number.
inline std::optional<std::uint64_t> number_in(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of "name value" lines.
inline std::uint64_t value_of(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
      return number_in(line.substr(name.size() + 1)).value_or(0);
    }
    at = end + 1;
  }
  return 0;
}

struct Names {
  const char* limit;
  const char* high;  // null: there is no such limit
  const char* usage;
  const char* inactive_files;  // in memory.stat, with everything below
  const char* active_files;
};
inline constexpr Names kFirst{"memory.limit_in_bytes", nullptr, "memory.usage_in_bytes", "total_inactive_file",
                              "total_active_file"};
inline constexpr Names kSecond{"memory.max", "memory.high", "memory.current", "inactive_file", "active_file"};

// The first version says "no limit" by a number close to 2^63.
inline constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

inline void look(const std::string& folder, const Names& names, MemoryLeft* least) {
  for (const char* const name : {names.limit, names.high}) {
    if (name == nullptr) continue;
    const std::string file = folder + "/" + name;
    const std::optional<std::uint64_t> limit = number_in(read_file(file));
    if (!limit || *limit >= kNoLimit) continue;
    const std::uint64_t usage = number_in(read_file(folder + "/" + names.usage)).value_or(0);
    const std::string statistics = read_file(folder + "/memory.stat");
    const std::uint64_t files = value_of(statistics, names.inactive_files) + value_of(statistics, names.active_files);
    const std::uint64_t used = usage - std::min(usage, files);
    const std::uint64_t left = *limit - std::min(*limit, used);
    if (left < least->bytes) *least = {left, *limit, used, file};
  }
}

// The group and all above it. In a container the path may be one of the host's, which is not to be seen here: then the
// container's own group is what is mounted.
inline void look_upwards(const std::string& mount, std::string path, const Names& names, MemoryLeft* least) {
  while (!path.empty() && path != "/") {
    look(mount + path, names, least);
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
  look(mount, names, least);
}

}  // namespace memory_limit_detail

// May throw std::bad_alloc. Reads a few small files. `root` is put before all their names: for tests.
inline MemoryLeft memory_left(const std::string& root = {}) {
  using namespace memory_limit_detail;
  MemoryLeft least;
  const std::string groups = read_file(root + "/proc/self/cgroup");
  // Lines of hierarchy:controllers:path; version 2 has the number 0 and no controllers.
  for (std::size_t at = 0; at < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      look_upwards(root + "/sys/fs/cgroup", path, kSecond, &least);
    } else if (controllers.find(",memory,") != std::string::npos) {
      look_upwards(root + "/sys/fs/cgroup/memory", path, kFirst, &least);
    }
  }
  return least;
}

}  // namespace memopt::shm
