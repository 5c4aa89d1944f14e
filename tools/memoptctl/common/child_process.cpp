#include "tools/memoptctl/common/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace memopt::tools {
namespace {

constexpr int kPollMs = 50;

bool write_whole(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

[[noreturn]] void run_child(ChildProcess::AtInterrupt at_interrupt, int out,
                            const std::function<void(const ChildProcess::Write&)>& run) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, at_interrupt == ChildProcess::AtInterrupt::kEnds ? SIG_DFL : SIG_IGN);
  if (const int null = ::open("/dev/null", O_WRONLY); null >= 0) ::dup2(null, STDOUT_FILENO);
  run([out](std::span<const std::byte> bytes) { return write_whole(out, bytes); });
  ::_exit(0);
}

}  // namespace

ChildProcess::ChildProcess(AtInterrupt at_interrupt, const std::function<void(const Write&)>& run) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    failure_ = std::strerror(errno);
    return;
  }
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) run_child(at_interrupt, ends[1], run);
  if (pid_ < 0) failure_ = std::strerror(errno);
  ::close(ends[1]);
  from_ = ends[0];
}

ChildProcess::~ChildProcess() {
  if (from_ >= 0) ::close(from_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

ChildProcess::Read ChildProcess::read(std::span<std::byte> bytes, const std::function<bool()>& gives_up) {
  while (!bytes.empty()) {
    pollfd ready{from_, POLLIN, 0};
    const int polled = ::poll(&ready, 1, gives_up ? kPollMs : -1);
    if (polled < 0 && errno != EINTR) return Read::kEnded;
    // What is there is read, whatever the time.
    if (polled <= 0) {
      if (gives_up && gives_up()) return Read::kGivenUp;
      continue;
    }
    const ssize_t got = ::read(from_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Read::kEnded;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return Read::kWhole;
}

}  // namespace memopt::tools
