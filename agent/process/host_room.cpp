#include "agent/process/host_room.h"

#include <linux/capability.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "agent/process/uncancellable.h"
#include "shm/memory_limit.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kMostReserve = std::uint64_t{4} << 30;
constexpr std::uint64_t kDefaultLocked = std::uint64_t{8} << 20;
constexpr std::uint64_t kPartOfGroup = 16;

// The number in a line "name: number", of /proc's files.
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view name, int base) {
  std::size_t at = text.find(name);
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') at = text.find(name, at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value, base).ec != std::errc()) return std::nullopt;
  return value;
}

struct HostMemory {
  std::uint64_t available = 0;
  std::uint64_t all = 0;
};

HostMemory host_memory(const std::string& root) {
  const std::string text = shm::memory_limit_detail::read_file(root + "/proc/meminfo");
  const auto available = value_of(text, "MemAvailable:", 10);
  const auto all = value_of(text, "MemTotal:", 10);
  if (available && all) return {*available << 10, *all << 10};
  // No /proc, or no descriptor is left for it. Less than there is: what the page cache would give back is not told.
  struct sysinfo told {};
  if (sysinfo(&told) != 0) return {};
  return {std::uint64_t{told.freeram} * told.mem_unit, std::uint64_t{told.totalram} * told.mem_unit};
}

// Nothing where there is none, or none that was set. Read as text, like CAP_IPC_LOCK, so that tests can say what they
// like.
std::optional<std::uint64_t> locked_limit(const std::string& root) {
  const std::string limits = shm::memory_limit_detail::read_file(root + "/proc/self/limits");
  const auto limit = value_of(limits, "Max locked memory", 10);
  if (!limit || *limit <= kDefaultLocked) return std::nullopt;
  const std::string status = shm::memory_limit_detail::read_file(root + "/proc/self/status");
  const std::uint64_t capabilities = value_of(status, "CapEff:", 16).value_or(0);
  return (capabilities >> CAP_IPC_LOCK & 1) != 0 ? std::nullopt : limit;
}

HostRoom least_room(std::uint64_t locked, const std::string& root) {
  const HostMemory memory = host_memory(root);
  const std::uint64_t reserve = std::min(memory.all / 8, kMostReserve);
  HostRoom room{memory.available - std::min(memory.available, reserve), "the host's free memory"};
  const auto at_most = [&](std::uint64_t bytes, const char* bound) {
    if (bytes < room.bytes) room = {bytes, bound};
  };
  const shm::MemoryLeft group = shm::memory_left(root);
  if (!group.file.empty()) at_most(group.bytes - group.bytes / kPartOfGroup, "the control group's limit");
  if (const auto limit = locked_limit(root)) {
    at_most(*limit - std::min(*limit, locked), "the limit of locked memory (ulimit -l)");
  }
  return room;
}

}  // namespace

HostRoom host_room(std::uint64_t locked, const char* root) noexcept {
  // Files are opened and read: a point at which the program's thread could be cancelled.
  const Uncancellable scope;
  const int kept = errno;
  HostRoom room{0, "memory of the program's to find out"};
  try {
    room = least_room(locked, root);
  } catch (const std::bad_alloc&) {
  }
  errno = kept;
  return room;
}

}  // namespace memopt::agent
