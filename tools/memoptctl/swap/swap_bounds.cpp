#include "tools/memoptctl/swap/swap_bounds.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;

swap::ModuleBounds failed(const std::string& why) {
  swap::ModuleBounds bounds;
  std::snprintf(bounds.failure, sizeof bounds.failure, "%s", why.c_str());
  return bounds;
}

OptionalModule load_module() {
#if MEMOPT_HAS_SWAP_BOUNDS
  return load_optional_module(swap::kModuleFile, swap::kModuleVersion, swap::kModuleRun);
#else
  return {nullptr, "not in this build: CLP (coinor-libclp-dev) was not there when it was configured"};
#endif
}

// Fewer bytes than a pipe takes at once: it is written and read whole.
static_assert(sizeof(swap::ModuleBounds) <= 512);

[[noreturn]] void run_in_child(swap::ModuleRun run, const swap::Problem& problem, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_DFL);
  if (const int null = ::open("/dev/null", O_WRONLY); null >= 0) ::dup2(null, STDOUT_FILENO);
  swap::ModuleBounds bounds;
  run(problem, problem.limit.value_or(swap::kNever), bounds);
  const ssize_t written = ::write(out, &bounds, sizeof bounds);
  ::_exit(written == static_cast<ssize_t>(sizeof bounds) ? 0 : 1);
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

swap::ModuleBounds swap_bounds(const swap::Problem& problem, double seconds) {
  static const OptionalModule module = load_module();
  if (module.run == nullptr) return failed(module.missing);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) run_in_child(reinterpret_cast<swap::ModuleRun>(module.run), problem, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return failed(std::strerror(errno));
  }
  const bool answered = wait_for(ends[0], deadline);
  swap::ModuleBounds bounds;
  const bool complete = answered && ::read(ends[0], &bounds, sizeof bounds) == static_cast<ssize_t>(sizeof bounds);
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (complete) return bounds;
  return failed(answered ? "the linear programme ended without an answer"
                         : fmt::format("the linear programme takes longer than {} s (--bound-time)", seconds));
}

}  // namespace memopt::tools
