#include "agent/link/planner_process.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "shm/planner_path.h"

namespace memopt::agent {
namespace {

// The file that this code was loaded from. The loader keeps the path as it was given, which may be relative to a folder
// that the program has left; the kernel's list has it in full.
std::string own_path() {
  Dl_info info{};
  const auto address = reinterpret_cast<std::uintptr_t>(&own_path);
  if (dladdr(reinterpret_cast<const void*>(address), &info) != 0 && info.dli_fname != nullptr &&
      info.dli_fname[0] == '/') {
    return info.dli_fname;
  }
  std::string path;
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return path;
  char line[4608];
  while (path.empty() && std::fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long from = 0;
    unsigned long to = 0;
    if (std::sscanf(line, "%lx-%lx", &from, &to) != 2 || address < from || address >= to) continue;
    if (const char* const slash = std::strchr(line, '/')) path.assign(slash, std::strcspn(slash, "\n"));
  }
  std::fclose(maps);
  return path;
}

}  // namespace

std::string find_planner(const std::string& wanted, std::string* why) {
  if (!wanted.empty()) {
    if (access(wanted.c_str(), X_OK) == 0) return wanted;
    *why = "planner " + wanted + ": " + std::strerror(errno);
    return {};
  }
  const std::string self = own_path();
  const std::string folder = self.substr(0, self.rfind('/') == std::string::npos ? 0 : self.rfind('/'));
  if (folder.empty()) {
    *why = "planner: the folder of this library is not known";
    return {};
  }
  std::string found = shm::planner_beside(folder);
  if (found.empty()) *why = "planner: no memoptd in " + shm::planner_places(folder);
  return found;
}

}  // namespace memopt::agent
