#include "limits_check.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include "printable.h"
#include "shm/options.h"
#include "shm/sealed_memory.h"

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;

// Page-locked staging memory and what network libraries register; the usual default of 64 KiB to 8 MiB is too little.
constexpr std::uint64_t kEnoughLocked = std::uint64_t{64} << 20;
constexpr std::uint64_t kEnoughShared = std::uint64_t{64} << 20;
// Rings of a program with a few threads, and room for the planner.
constexpr std::uint64_t kEnoughInGroup = std::uint64_t{256} << 20;
// v1 says "no limit" by a number close to 2^63.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

std::string text(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::optional<std::string> read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

void check_locked(Report& report) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
    report.add("memlock", Verdict::kUnknown, std::strerror(errno));
  } else if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kEnoughLocked) {
    report.add("memlock", Verdict::kOk,
               limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited") : text(limit.rlim_cur));
  } else {
    report.add("memlock", Verdict::kWarning,
               fmt::format("a process may lock {} only (RLIMIT_MEMLOCK): too small for page-locked host memory that "
                           "is registered (RDMA, NCCL over InfiniBand)",
                           text(limit.rlim_cur)),
               "ulimit -l unlimited, LimitMEMLOCK=infinity in a service, --ulimit memlock=-1 for a container");
  }
}

void check_shared(Report& report) {
  struct statvfs info {};
  const char* const remedy = "mount a tmpfs there; in a container use --shm-size or --ipc=host";
  if (::statvfs("/dev/shm", &info) != 0) {
    report.add("shm", Verdict::kWarning,
               std::string("/dev/shm: ") + std::strerror(errno) + "; memopt does not need it, frameworks do", remedy);
  } else {
    const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
    const std::string sizes =
        fmt::format("/dev/shm: {} free of {}", text(free), text(std::uint64_t{info.f_blocks} * info.f_frsize));
    if (free >= kEnoughShared) {
      report.add("shm", Verdict::kOk, sizes);
    } else {
      report.add("shm", Verdict::kWarning, sizes + "; memopt does not need it, frameworks do", remedy);
    }
  }
  // What memopt does need: one ring, as the agent makes it.
  const std::string_view wanted = shm::option(shm::OptionId::kRing).default_value;
  const shm::Descriptor memory = shm::create_memory("memopt-doctor", shm::ring_bytes(wanted));
  if (memory) {
    report.add("memfd", Verdict::kOk, fmt::format("shared memory for a ring ({}) can be had", wanted));
  } else {
    report.add(
        "memfd", Verdict::kProblem,
        fmt::format("no shared memory for a ring ({}): {}; nothing can be planned", wanted, std::strerror(errno)),
        "allow memfd_create and fallocate (seccomp profile), or give the control group more memory");
  }
}

void check_group(Report& report) {
  const GroupMemory memory = read_group_memory();
  if (!memory.limit) {
    report.add("cgroup", Verdict::kOk, "no limit on host memory");
    return;
  }
  const std::uint64_t left = *memory.limit > memory.used ? *memory.limit - memory.used : 0;
  const std::string sizes =
      fmt::format("host memory is limited to {}, {} left ({})", text(*memory.limit), text(left), memory.file);
  if (left >= kEnoughInGroup) {
    report.add("cgroup", Verdict::kOk, sizes);
  } else {
    report.add("cgroup", Verdict::kWarning, sizes,
               "raise the limit, or make rings smaller (MEMOPT_RING: so much for each thread)");
  }
}

}  // namespace

std::optional<std::uint64_t> parse_limit(std::string_view text) {
  std::uint64_t number = 0;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failed != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

// Lines "ID:CONTROLLERS:PATH"; v2 has one with ID 0 and no controllers. A v1 memory controller counts before it.
std::optional<std::string> memory_group(std::string_view text) {
  std::optional<std::string> unified;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (line.substr(0, first) == "0" && controllers.empty()) unified = path;
    std::string_view rest = controllers;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      if (name == "memory") return "/memory" + path;
    }
  }
  return unified;
}

GroupMemory read_group_memory(const fs::path& root) {
  GroupMemory found;
  std::ifstream file(root / "proc/self/cgroup");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto group = memory_group(text);
  if (!group) return found;
  const fs::path top = root / "sys/fs/cgroup";
  // Limits of the groups above count too. In a container the path may be one of the host's: then only the top is there.
  fs::path folder = top / fs::path(*group).relative_path();
  for (;;) {
    for (const auto& [limit_name, used_name] :
         {std::pair("memory.max", "memory.current"), std::pair("memory.limit_in_bytes", "memory.usage_in_bytes")}) {
      const auto limit = parse_limit(read_line(folder / limit_name).value_or(""));
      if (!limit || *limit >= kNoLimit || (found.limit && *found.limit <= *limit)) continue;
      found.limit = limit;
      found.used = parse_limit(read_line(folder / used_name).value_or("")).value_or(0);
      found.file = (folder / limit_name).string();
    }
    if (folder == top || folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return found;
}

void check_limits(Report& report) {
  check_locked(report);
  check_shared(report);
  check_group(report);
}

}  // namespace memopt::tools
