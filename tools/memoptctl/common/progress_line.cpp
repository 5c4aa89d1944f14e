#include "tools/memoptctl/common/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kEvery{250};

std::size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

ProgressLine::ProgressLine(std::string command) : command_(std::move(command)) {
  if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { show(); });
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ProgressLine::say(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

void ProgressLine::show() {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, began_ + kPatience, [this] { return over_; })) return;
  while (!over_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began_);
    const std::string line = fmt::format("{}: {:>3} s  {}", command_, seconds.count(), what_);
    fmt::print(stderr, "\r\x1b[K{}", printable(line, columns() - 1));
    std::fflush(stderr);
    changed_.wait_for(lock, kEvery, [this] { return over_; });
  }
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace memopt::tools
