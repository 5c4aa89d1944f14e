#include "tools/memoptctl/common/child_records.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void run_child(const std::function<void(const WriteRecord&)>& run, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_DFL);
  if (const int null = ::open("/dev/null", O_WRONLY); null >= 0) ::dup2(null, STDOUT_FILENO);
  bool complete = true;
  run([&](std::span<const std::byte> record) {
    const ssize_t written = ::write(out, record.data(), record.size());
    complete = complete && written == static_cast<ssize_t>(record.size());
  });
  ::_exit(complete ? 0 : 1);
}

// Whether there is something to be read before then.
bool wait_for(int fd, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    const int polled = ::poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (polled > 0) return true;
    if (polled < 0 && errno != EINTR) return false;
    if (left <= 0) return false;
  }
}

}  // namespace

ChildOutcome last_record_of_child(std::span<std::byte> record, double seconds,
                                  const std::function<void(const WriteRecord&)>& run) {
  ChildOutcome outcome;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    outcome.failure = std::strerror(errno);
    return outcome;
  }
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) run_child(run, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    outcome.failure = std::strerror(errno);
    ::close(ends[0]);
    return outcome;
  }
  std::array<std::byte, kMostRecordBytes> next;
  while (true) {
    outcome.in_time = wait_for(ends[0], deadline);
    if (!outcome.in_time || ::read(ends[0], next.data(), record.size()) != static_cast<ssize_t>(record.size())) break;
    std::copy_n(next.begin(), record.size(), record.begin());
    outcome.answered = true;
  }
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return outcome;
}

}  // namespace memopt::tools
