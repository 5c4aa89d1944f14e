// A child whose end raises no signal can be waited for by nobody who does not ask for such children (__WCLONE), so that
// neither wait() nor a SIGCHLD handler of the program sees it. execve() makes an ordinary child of it, though: what
// executes memoptd is therefore a grandchild, and its parent, which never executes anything, is gone before memoptd is.
// Memory is shared until then (as with vfork): nothing is copied, no fork handler runs.
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "agent/link/planner_process.h"

namespace memopt::agent {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;  // each of the two

struct Start {
  const char* path;
  char* const* arguments;
  char* const* environment;
  char* inner_stack;
  int failure;
};

// Both run with the starting thread's thread-local storage, while that thread stands still: system calls only.
int execute(void* argument) {
  auto* const start = static_cast<Start*>(argument);
  syscall(SYS_execve, start->path, start->arguments, start->environment);
  start->failure = errno;
  syscall(SYS_exit_group, 127);
  return 127;
}

int start_and_leave(void* argument) {
  auto* const start = static_cast<Start*>(argument);
  if (clone(execute, start->inner_stack, CLONE_VM | CLONE_VFORK, argument) < 0) start->failure = errno;
  syscall(SYS_exit_group, 0);
  return 0;
}

}  // namespace

int start_planner(const std::string& path, const std::string& instance) noexcept {
  void* const stacks =
      mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED) return errno;
  char name[] = "memoptd";
  char detached[] = "--detached";
  char name_option[] = "--name";
  char* arguments[5] = {name, detached};
  if (!instance.empty()) {
    arguments[2] = name_option;
    arguments[3] = const_cast<char*>(instance.c_str());  // execve's parameter is not const for history's sake
  }
  char* environment[] = {nullptr};
  Start start{path.c_str(), arguments, environment, static_cast<char*>(stacks) + 2 * kStackBytes, 0};
  const int child = clone(start_and_leave, static_cast<char*>(stacks) + kStackBytes, CLONE_VM | CLONE_VFORK, &start);
  int failure = child < 0 ? errno : 0;
  if (child > 0) {
    // ECHILD: the program collects every kind of child (__WALL) and was faster.
    while (waitpid(child, nullptr, __WCLONE) < 0 && errno == EINTR) {
    }
    failure = *const_cast<volatile int*>(&start.failure);
  }
  munmap(stacks, 2 * kStackBytes);
  return failure;
}

}  // namespace memopt::agent
