#include "agent/process/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "agent/process/made_once.h"
#include "agent/process/options.h"
#include "agent/process/uncancellable.h"

namespace memopt::agent {
namespace {

// Descriptors of ours stay out of the low numbers, which programs count on and loop over.
constexpr int kLowestDescriptor = 500;
constexpr int kNowhere = -1;

// Was there a standard error when the library was loaded? If not, its number is that of a file of the program's.
constinit std::atomic<bool> g_has_standard_error{true};

// Whole lines, so that those of several threads and processes do not mix; no lock, which a forked child could find
// taken.
void write_line(int descriptor, std::string_view line) noexcept {
  if (descriptor == kNowhere) return;
  const Uncancellable scope;
  while (!line.empty()) {
    const ssize_t written = ::write(descriptor, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // it can't be told
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string_view name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      break;
  }
  return "off";
}

LogLevel parse_level(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return LogLevel::kWarn;
}

int open_log_file(const std::string& path) {
  const int low = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (low < 0) return kNowhere;
  const int high = ::fcntl(low, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high < 0) return low;
  ::close(low);
  return high;
}

struct Log {
  LogLevel level = LogLevel::kOff;
  int descriptor = kNowhere;
  bool own_descriptor = false;
  int failure = 0;  // of opening the file

  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() {
    if (own_descriptor) ::close(descriptor);
  }
};

Log* open_log() {
  const Uncancellable scope;
  const std::string path(options().value(shm::OptionId::kLogFile));
  Log* const log = new Log;
  log->level = parse_level(options().value(shm::OptionId::kLog));
  if (!path.empty() && log->level != LogLevel::kOff) {
    log->descriptor = open_log_file(path);
    log->own_descriptor = log->descriptor != kNowhere;
    if (!log->own_descriptor) log->failure = errno;
  }
  if (!log->own_descriptor && g_has_standard_error.load(std::memory_order_relaxed)) log->descriptor = STDERR_FILENO;
  return log;
}

void write_message(const Log& log, LogLevel level, std::string_view message) {
  write_line(log.descriptor, fmt::format("memopt[{}] {}: {}\n", getpid(), name_of(level), message));
}

constinit MadeOnce<Log> g_log;
constinit std::atomic<bool> g_complained{false};

[[gnu::cold, gnu::noinline]] void complain(const Log& log) {
  if (g_complained.exchange(true) || log.level > LogLevel::kWarn) return;
  if (log.failure != 0) {
    write_message(log, LogLevel::kWarn,
                  fmt::format("MEMOPT_LOG_FILE={}: {}; messages go to standard error",
                              options().value(shm::OptionId::kLogFile), std::strerror(log.failure)));
  }
  for (const std::string& complaint : options().complaints()) write_message(log, LogLevel::kWarn, complaint);
}

const Log* instance() noexcept {
  try {
    const Log* const log = g_log.get(open_log);
    if (!g_complained.load(std::memory_order_relaxed)) [[unlikely]]
      complain(*log);
    return log;
  } catch (...) {
    return nullptr;  // no memory for a log: no log
  }
}

}  // namespace

void look_for_standard_error() noexcept {
  const int kept = errno;
  if (::fcntl(STDERR_FILENO, F_GETFD) < 0 && errno == EBADF) g_has_standard_error.store(false);
  errno = kept;
}

bool log_wants(LogLevel level) noexcept {
  const Log* const log = instance();
  return log != nullptr && level != LogLevel::kOff && level >= log->level;
}

void log_write(LogLevel level, std::string_view message) noexcept {
  const Log* const log = instance();
  if (log == nullptr || level == LogLevel::kOff || level < log->level) return;
  const int kept = errno;
  try {
    write_message(*log, level, message);
  } catch (...) {
    // A log that cannot be written is not worth a program.
  }
  errno = kept;
}

void log_notice(std::string_view message) noexcept {
  const Log* const log = instance();
  if (log == nullptr || log->level > LogLevel::kWarn) return;
  const int kept = errno;
  try {
    write_line(log->descriptor, fmt::format("memopt: {}\n", message));
  } catch (...) {
    // A log that cannot be written is not worth a program.
  }
  errno = kept;
}

}  // namespace memopt::agent
