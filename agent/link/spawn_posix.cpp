// For sanitised builds, whose runtimes want to know of every process and thread. The program may see the child.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agent/link/planner_process.h"

namespace memopt::agent {

int start_planner(const std::string& path, const std::string& instance) noexcept {
  char name[] = "memoptd";
  char name_option[] = "--name";
  char* arguments[4] = {name};
  if (!instance.empty()) {
    arguments[1] = name_option;
    arguments[2] = const_cast<char*>(instance.c_str());
  }
  char* environment[] = {nullptr};
  pid_t child = 0;
  if (const int failure = posix_spawn(&child, path.c_str(), nullptr, nullptr, arguments, environment); failure != 0) {
    return failure;
  }
  // It forks, and ends at once.
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return 0;
}

}  // namespace memopt::agent
