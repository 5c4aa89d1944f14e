#include "tools/memoptctl/status/watch_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace memopt::tools {
namespace {

// Both end a watch as it is meant to end; they are blocked, and taken while it waits.
sigset_t ending_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM}) ::sigaddset(&set, number);
  return set;
}

// False where a signal ends the watch.
bool wait(double seconds) {
  const sigset_t set = ending_signals();
  timespec time{};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = std::lround((seconds - std::floor(seconds)) * 1e9) % 1'000'000'000;
  for (;;) {
    if (::sigtimedwait(&set, nullptr, &time) >= 0) return false;
    if (errno != EINTR) return true;
  }
}

bool reader_is_gone() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  ::localtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

}  // namespace

int watch(const StatusOptions& options) {
  const sigset_t set = ending_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  for (bool seen = false;; seen = true) {
    const Snapshot found = take_snapshot(options.pid);
    if (found.rows.empty() && options.pid) {
      if (!seen) say_not_seen(*options.pid);
      return seen ? 0 : kExitNone;
    }
    if (options.json) {
      fmt::print("{}\n", to_json(found).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}{}\n{}{}", seen ? "\n" : "", clock_text(),
                 found.rows.empty() ? "no process under memopt has loaded the CUDA driver\n" : table(found.rows),
                 note_on_others(found.unreadable));
    }
    if (std::fflush(stdout) != 0) {
      if (errno != EPIPE) return 1;  // finish_output says why
      std::clearerr(stdout);
      return 0;
    }
    if (!wait(*options.watch) || reader_is_gone()) return 0;
  }
}

}  // namespace memopt::tools
