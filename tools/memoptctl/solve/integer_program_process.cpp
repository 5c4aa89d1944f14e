#include "tools/memoptctl/solve/integer_program_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kGrace{500};

OptionalModule load_module() {
#if MEMOPT_HAS_INTEGER_PROGRAM
  return load_optional_module(layout::kModuleFile, layout::kModuleVersion, layout::kModuleRun);
#else
  return {nullptr, "not in this build: CBC (coinor-libcbc-dev) was not there when it was configured"};
#endif
}

const OptionalModule& module() {
  static const OptionalModule module = load_module();
  return module;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

// False: end of file, an error, or the time was over.
bool read_all(int fd, std::span<std::byte> bytes, std::optional<Clock::time_point> deadline) {
  while (!bytes.empty()) {
    int wait = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return false;
      wait = static_cast<int>(std::min<std::int64_t>(left, 1'000'000));
    }
    pollfd ready{fd, POLLIN, 0};
    const int polled = ::poll(&ready, 1, wait);
    if (polled < 0 && errno != EINTR) return false;
    if (polled <= 0) continue;
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

[[noreturn]] void run_in_child(const layout::Problem& problem, const layout::Limits& limits, int out) {
  std::signal(SIGINT, SIG_DFL);
  if (const int null = ::open("/dev/null", O_WRONLY); null >= 0) ::dup2(null, STDOUT_FILENO);
  layout::ModuleAnswer answer;
  std::vector<std::uint64_t> offsets(problem.buffers.size());
  reinterpret_cast<layout::ModuleRun>(module().run)(problem, limits, offsets.data(), answer);
  const bool written = write_all(out, std::as_bytes(std::span(&answer, 1))) &&
                       (!answer.found || write_all(out, std::as_bytes(std::span(offsets))));
  ::_exit(written ? 0 : 1);
}

layout::ModuleAnswer failed(std::string_view why) {
  layout::ModuleAnswer answer;
  std::snprintf(answer.failure, sizeof answer.failure, "%.*s", static_cast<int>(why.size()), why.data());
  return answer;
}

}  // namespace

const std::string& integer_program_missing() { return module().missing; }

layout::ModuleAnswer run_integer_program(const layout::Problem& problem, const layout::Limits& limits,
                                         std::vector<std::uint64_t>& offsets) {
  offsets.clear();
  if (module().run == nullptr) return failed(module().missing);
  std::optional<Clock::time_point> deadline;
  if (limits.time != std::chrono::nanoseconds::max()) deadline = Clock::now() + limits.time + kGrace;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) run_in_child(problem, limits, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return failed(std::strerror(errno));
  }
  layout::ModuleAnswer answer;
  bool complete = read_all(ends[0], std::as_writable_bytes(std::span(&answer, 1)), deadline);
  if (complete && answer.found) {
    offsets.resize(problem.buffers.size());
    complete = read_all(ends[0], std::as_writable_bytes(std::span(offsets)), {});
  }
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (complete) return answer;
  offsets.clear();
  return {};
}

}  // namespace memopt::tools
