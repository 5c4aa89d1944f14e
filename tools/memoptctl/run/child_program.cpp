#include "tools/memoptctl/run/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/memoptctl/run/run_command.h"

namespace memopt::tools {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// Writing to a full disk or a closed pipe is an error to be told, not a death.
constexpr int kIgnored[] = {SIGXFSZ, SIGPIPE};

sigset_t waited_for() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kPassedOn) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGCHLD);
  return set;
}

struct Dispositions {
  sigset_t mask;
  struct sigaction ignored[std::size(kIgnored)];
};
// As they were before: the program gets them back.
Dispositions before;

}  // namespace

ChildProgram::ChildProgram() {
  const sigset_t set = waited_for();
  ::sigprocmask(SIG_BLOCK, &set, &before.mask);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (std::size_t i = 0; i < std::size(kIgnored); ++i) ::sigaction(kIgnored[i], &ignore, &before.ignored[i]);
}

bool ChildProgram::start(const std::function<int()>& become) {
  exit_code_ = kExitSetup;
  int failure[2];  // gets the exit code of a program that could not be started, else nothing
  if (::pipe2(failure, O_CLOEXEC) != 0) {
    fmt::print(stderr, "memoptctl: no pipe: {}\n", std::strerror(errno));
    return false;
  }
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) {
    fmt::print(stderr, "memoptctl: no process: {}\n", std::strerror(errno));
    ::close(failure[0]);
    ::close(failure[1]);
    return false;
  }
  if (pid_ == 0) {
    for (std::size_t i = 0; i < std::size(kIgnored); ++i) ::sigaction(kIgnored[i], &before.ignored[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &before.mask, nullptr);
    const int code = become();
    std::fflush(nullptr);
    [[maybe_unused]] const ssize_t told = ::write(failure[1], &code, sizeof code);
    ::_exit(code);
  }
  ::close(failure[1]);
  int code = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure[0], &code, sizeof code);
  } while (got < 0 && errno == EINTR);
  ::close(failure[0]);
  if (got <= 0) return true;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = code;
  return false;
}

void ChildProgram::ended(int status) {
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void ChildProgram::wait() {
  const sigset_t set = waited_for();
  for (;;) {
    // Signals of one kind become one: what counts is whether the program is still there.
    int status = 0;
    const pid_t which = ::waitpid(pid_, &status, WNOHANG);
    if (which == pid_) return ended(status);
    if (which < 0 && errno != EINTR) return;
    siginfo_t signal{};
    const int number = ::sigwaitinfo(&set, &signal);
    if (number < 0 || number == SIGCHLD) continue;
    // From the terminal the whole group has it already, and so has the program if it is what sent it to its group.
    const bool sent_to_us = signal.si_code <= 0 && signal.si_pid != pid_;
    if (sent_to_us) ::kill(pid_, number);
  }
}

}  // namespace memopt::tools
