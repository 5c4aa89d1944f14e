#include "tools/memoptctl/run/limited_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMostOutput = std::size_t{1} << 20;
constexpr milliseconds kAfterTheEnd{200};  // for what is still in the pipes, which grandchildren may keep open
constexpr milliseconds kAfterKilling{2000};

// Runs in the child; returns only when it failed: the errno.
int become(const LimitedCommand& wanted, int output, int errors) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || ::dup2(nothing, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(errors, 2) < 0) return errno;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (wanted.empty_environment) ::clearenv();
  for (const auto& [name, value] : wanted.environment) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
  std::vector<char*> arguments;
  for (const std::string& argument : wanted.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return errno;
}

// False at the end of the pipe.
bool take(int fd, std::string& text) {
  char part[16384];
  const ssize_t got = ::read(fd, part, sizeof part);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  text.append(part, static_cast<std::size_t>(got));
  if (text.size() > kMostOutput) text.erase(0, text.size() - kMostOutput);
  return got > 0;
}

void close_pipe(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

LimitedProcess::LimitedProcess(const LimitedCommand& command)
    : deadline_(Clock::now() + command.limit), limit_(command.limit) {
  int output[2] = {-1, -1};
  int errors[2] = {-1, -1};
  int failure[2] = {-1, -1};
  if (command.command.empty() || ::pipe2(output, O_CLOEXEC) != 0 || ::pipe2(errors, O_CLOEXEC) != 0 ||
      ::pipe2(failure, O_CLOEXEC) != 0) {
    start_error_ = command.command.empty() ? EINVAL : errno;
    ended_ = true;
  } else {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int error = become(command, output[1], errors[1]);
      [[maybe_unused]] const ssize_t told = ::write(failure[1], &error, sizeof error);
      ::_exit(127);
    }
    if (pid_ < 0) {
      start_error_ = errno;
      ended_ = true;
    }
  }
  close_pipe(output[1]);
  close_pipe(errors[1]);
  close_pipe(failure[1]);
  if (pid_ > 0) {
    int error = 0;
    ssize_t got = 0;
    do {
      got = ::read(failure[0], &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    if (got == static_cast<ssize_t>(sizeof error)) {
      start_error_ = error;
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
      ended_ = true;
    }
  }
  close_pipe(failure[0]);
  output_fd_ = output[0];
  errors_fd_ = errors[0];
  for (const int fd : {output_fd_, errors_fd_}) {
    if (fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

LimitedProcess::~LimitedProcess() {
  if (!ended_) stop();
  close_pipe(output_fd_);
  close_pipe(errors_fd_);
}

void LimitedProcess::read_all(milliseconds time) {
  const auto until = Clock::now() + time;
  do {
    pollfd waiting[2] = {{output_fd_, POLLIN, 0}, {errors_fd_, POLLIN, 0}};
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
    const int wait = static_cast<int>(std::clamp<long>(left, 0, 20));
    if (::poll(waiting, 2, wait) > 0) {
      if (waiting[0].revents != 0 && !take(output_fd_, output_)) close_pipe(output_fd_);
      if (waiting[1].revents != 0 && !take(errors_fd_, errors_)) close_pipe(errors_fd_);
    }
    if (collect()) return;
  } while (Clock::now() < until);
}

// Has it ended? Its exit code then.
bool LimitedProcess::collect() {
  if (ended_) return true;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ended_ = true;
  return true;
}

bool LimitedProcess::run_for(milliseconds time) {
  if (!ended_) {
    read_all(std::min(time, std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()) + milliseconds(1)));
    if (!ended_ && Clock::now() >= deadline_) {
      timed_out_ = true;
      stop();
    }
    if (!ended_) return true;
  }
  const auto until = Clock::now() + kAfterTheEnd;
  while ((output_fd_ >= 0 || errors_fd_ >= 0) && Clock::now() < until) {
    pollfd waiting[2] = {{output_fd_, POLLIN, 0}, {errors_fd_, POLLIN, 0}};
    if (::poll(waiting, 2, 20) <= 0) continue;
    if (waiting[0].revents != 0 && !take(output_fd_, output_)) close_pipe(output_fd_);
    if (waiting[1].revents != 0 && !take(errors_fd_, errors_)) close_pipe(errors_fd_);
  }
  close_pipe(output_fd_);
  close_pipe(errors_fd_);
  return false;
}

void LimitedProcess::finish() {
  while (run_for(milliseconds(1000))) {
  }
}

// One that does not die (stuck in the kernel) is left behind.
void LimitedProcess::stop() {
  if (ended_ || pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  const auto until = Clock::now() + kAfterKilling;
  while (!collect() && Clock::now() < until) ::usleep(5000);
  ended_ = true;
}

std::string LimitedProcess::how_it_ended() const {
  if (start_error_ != 0) return fmt::format("it can't be started: {}", std::strerror(start_error_));
  if (timed_out_) return fmt::format("no answer within {} s", (limit_.count() + 999) / 1000);
  if (exit_code_ > 128) return fmt::format("killed by signal {} ({})", exit_code_ - 128, ::strsignal(exit_code_ - 128));
  return fmt::format("exit code {}", exit_code_);
}

}  // namespace memopt::tools
