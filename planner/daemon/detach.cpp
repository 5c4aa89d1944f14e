#include "planner/daemon/detach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace memopt::planner {
namespace {

void close_range_or_all(unsigned first, unsigned last) {
  if (first > last || syscall(SYS_close_range, first, last, 0u) == 0) return;
  rlimit limit{};
  const rlim_t most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? limit.rlim_cur : 65536;
  for (unsigned number = first; number <= last && number < most; ++number) close(static_cast<int>(number));
}

}  // namespace

bool detach(bool already_orphaned, int keep, std::string* error) {
  for (int forks = already_orphaned ? 2 : 0; forks < 2; ++forks) {
    const pid_t child = fork();
    if (child < 0) {
      *error = std::string("no process: ") + std::strerror(errno);
      return false;
    }
    if (child > 0) _exit(0);
    // A session leader must not be the one that stays: it could get a terminal.
    if (forks == 0) setsid();
  }
  if (already_orphaned) setsid();
  if (chdir("/") != 0) {
    // Then it stays where it is.
  }
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= STDERR_FILENO; ++standard) {
    if (null < 0) close(standard);
    if (null >= 0 && standard != keep) dup2(null, standard);
  }
  if (keep > STDERR_FILENO) {
    close_range_or_all(STDERR_FILENO + 1, static_cast<unsigned>(keep) - 1);
    close_range_or_all(static_cast<unsigned>(keep) + 1, ~0u);
  } else {
    close_range_or_all(STDERR_FILENO + 1, ~0u);
  }
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Where memory runs out (the program's control group counts ours too), it is this process that can be spared.
  if (const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); file >= 0) {
    if (write(file, "1000", 4) != 4) {
      // It stays as likely to be ended as any other.
    }
    close(file);
  }
  return true;
}

}  // namespace memopt::planner
