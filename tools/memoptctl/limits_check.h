// What the system allows a process that matters to memopt: shared memory, locked memory, memory of the control group.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "doctor_report.h"

namespace memopt::tools {

struct GroupMemory {
  std::optional<std::uint64_t> limit;  // the tightest on the way up; absent: none
  std::uint64_t used = 0;              // of the group that has it
  std::string file;                    // that says so
};

// Of this process's control group, v2 or v1. `root` stands for "/".
GroupMemory read_group_memory(const std::filesystem::path& root = "/");

// Folder of the memory controller in a /proc/self/cgroup text, below /sys/fs/cgroup; nothing if there is none.
std::optional<std::string> memory_group(std::string_view text);

// 0 to 2^64-1; nothing for "max" and whatever is no number.
std::optional<std::uint64_t> parse_limit(std::string_view text);

void check_limits(Report& report);

}  // namespace memopt::tools
