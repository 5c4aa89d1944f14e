#include "tools/memoptctl/common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kQuiet{2};
constexpr std::chrono::milliseconds kBetween{500};
constexpr std::chrono::seconds kBetweenLines{10};  // where there is no terminal, each look stays

bool is_terminal() {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return terminal;
}

}  // namespace

void Progress::stage(const std::string& what) {
  what_ = what;
  if (is_terminal()) shown_at_.reset();
  look();
}

void Progress::look() {
  const auto now = Clock::now();
  if (now - begun_ < kQuiet || (shown_at_ && now - *shown_at_ < (is_terminal() ? kBetween : kBetweenLines))) return;
  shown_at_ = now;
  show();
}

void Progress::show() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun_).count();
  if (is_terminal()) {
    fmt::print(stderr, "\r\033[Kmemoptctl {}: {} ({} s)", command_, what_, seconds);
    std::fflush(stderr);
    on_line_ = true;
  } else {
    fmt::print(stderr, "memoptctl {}: {} ({} s)\n", command_, what_, seconds);
  }
}

void Progress::clear() {
  if (!on_line_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  on_line_ = false;
}

}  // namespace memopt::tools
