#include "tools/memoptctl/status/processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;

// A file of /proc, whole or up to the limit; nothing on failure, with errno left as it was.
std::optional<std::string> read_limited(const std::string& path, std::size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return std::nullopt;
  std::string text;
  while (text.size() < limit) {
    char part[65536];
    const ssize_t got = ::read(fd, part, std::min(sizeof part, limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      ::close(fd);
      errno = error;
      return std::nullopt;
    }
    if (got == 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return text;
}

// File name of the mapping that a line of /proc/PID/maps names, without " (deleted)".
std::string_view mapped_file(std::string_view line) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (line.ends_with(kDeleted)) line.remove_suffix(kDeleted.size());
  const std::size_t slash = line.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : line.substr(slash + 1);
}

// Parent of a process by its /proc/PID/stat; the command in it may hold blanks and parentheses, so the last ')' counts.
pid_t parent_of(const std::string& folder) {
  const auto stat = read_limited(folder + "/stat", 4096);
  const std::size_t close = stat ? stat->rfind(')') : std::string::npos;
  if (close == std::string::npos || stat->size() < close + 5) return 0;
  pid_t parent = 0;
  std::from_chars(stat->data() + close + 4, stat->data() + stat->size(), parent);  // ") S PPID"
  return parent;
}

bool has_disable(const std::string& environment) {
  constexpr std::string_view kName = "MEMOPT_DISABLE=";
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry.starts_with(kName)) return entry != "MEMOPT_DISABLE=" && entry != "MEMOPT_DISABLE=0";
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return false;
}

}  // namespace

std::string command_of(pid_t pid, const std::string& proc) {
  auto text = read_limited(proc + "/" + std::to_string(pid) + "/cmdline", 4096);
  if (!text || text->empty()) return "?";
  while (!text->empty() && text->back() == '\0') text->pop_back();
  std::replace(text->begin(), text->end(), '\0', ' ');
  return printable(*text);
}

std::string why_out_of_reach(pid_t pid, uid_t user, const std::string& proc) {
  struct stat found {};
  if (::stat((proc + "/" + std::to_string(pid)).c_str(), &found) != 0) return "there is no such process";
  if (user == 0 || found.st_uid == user) return "";
  return "it is another user's, and only that user or root may look at it";
}

Scan scan_processes(const std::string& proc) {
  Scan scan;
  std::error_code error;
  const fs::path own_network = fs::read_symlink(proc + "/self/ns/net", error);
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    Process process;
    const auto [stop, failed] = std::from_chars(name.data(), name.data() + name.size(), process.pid);
    if (failed != std::errc() || stop != name.data() + name.size()) continue;
    // Programs with large models map many files; 64 MiB of lines is far beyond any.
    const auto maps = read_limited(entry->path().string() + "/maps", std::size_t{64} << 20);
    if (!maps) {
      if (errno == EACCES || errno == EPERM) ++scan.unreadable;
      continue;  // else it has gone meanwhile
    }
    std::string_view rest = *maps;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const std::string_view file = mapped_file(line);
      process.memopt = process.memopt || is_library_name(file);
      process.driver = process.driver || file == "libcuda.so" || file.starts_with("libcuda.so.");
    }
    if (!process.memopt) continue;
    process.command = command_of(process.pid, proc);
    process.parent = parent_of(entry->path().string());
    if (const auto environment = read_limited(entry->path().string() + "/environ", std::size_t{4} << 20)) {
      process.disabled = has_disable(*environment);
    }
    std::error_code unknown;
    const fs::path network = fs::read_symlink(entry->path() / "ns/net", unknown);
    process.other_network_namespace = !unknown && !own_network.empty() && network != own_network;
    scan.processes.push_back(std::move(process));
  }
  std::sort(scan.processes.begin(), scan.processes.end(),
            [](const Process& a, const Process& b) { return a.pid < b.pid; });
  return scan;
}

}  // namespace memopt::tools
