// Messages for people: to standard error or to MEMOPT_LOG_FILE, never to standard output. Nothing is formatted unless
// it is wanted. Any thread may log at any time, also while the process exits. errno is kept. Nothing throws.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace memopt::agent {

enum class LogLevel : int { kDebug, kInfo, kWarn, kError, kOff };

// At load time: a program that was started without standard error gets no message there, since its first file has that
// number.
void look_for_standard_error() noexcept;

// Is a message of that level wanted? The first call opens the log.
bool log_wants(LogLevel level) noexcept;

void log_write(LogLevel level, std::string_view message) noexcept;

// What a person is always told, unless MEMOPT_LOG is error or off: one line "memopt: ...".
void log_notice(std::string_view message) noexcept;

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!log_wants(level)) [[likely]]
    return;
  const int kept = errno;
  try {
    log_write(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
    log_write(level, "(a message could not be formatted: out of memory)");
  }
  errno = kept;
}

}  // namespace memopt::agent
