#include "agent/process/log.h"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "agent/process/options.h"

namespace memopt::agent {
namespace {

// One write(2) a message, so that lines of several processes do not mix. spdlog's own file sinks keep FILE buffers,
// which a forked child would write again.
class DescriptorSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const char* at = line.data();
    std::size_t left = line.size();
    while (left > 0) {
      const ssize_t written = ::write(descriptor_, at, left);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;  // nobody to tell
      at += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  void flush_() override {}

  int descriptor_;
};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

LogLevel parse_level(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return LogLevel::kWarn;
}

// Descriptors of ours stay out of the low numbers, which programs count on and loop over.
constexpr int kLowestDescriptor = 500;

int open_log_file(const std::string& path) {
  const int low = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (low < 0) return -1;
  const int high = ::fcntl(low, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high < 0) return low;
  ::close(low);
  return high;
}

struct Log {
  LogLevel level;
  spdlog::logger logger;
  spdlog::logger notices;
};

// The logger is used directly: spdlog's registry would be destroyed at exit, under the feet of other threads.
Log* open_log() {
  const std::string path(options().value(shm::OptionId::kLogFile));
  const LogLevel level = parse_level(options().value(shm::OptionId::kLog));
  int descriptor = STDERR_FILENO;
  int failure = 0;
  if (!path.empty() && level != LogLevel::kOff) {
    descriptor = open_log_file(path);
    if (descriptor < 0) {
      failure = errno;
      descriptor = STDERR_FILENO;
    }
  }
  const auto sink = std::make_shared<DescriptorSink>(descriptor);
  // A pattern belongs to a sink, so the notices have one of their own on the same descriptor.
  const auto plain = std::make_shared<DescriptorSink>(descriptor);
  Log* log = new Log{level, spdlog::logger("memopt", sink), spdlog::logger("memopt", plain)};
  log->notices.set_pattern("memopt: %v");
  log->logger.set_pattern("memopt[%P] %l: %v");
  log->logger.set_level(to_spdlog(level));
  if (failure != 0) {
    log->logger.warn("MEMOPT_LOG_FILE={}: {}; messages go to standard error", path, std::strerror(failure));
  }
  for (const std::string& complaint : options().complaints()) log->logger.warn("{}", complaint);
  return log;
}

Log* instance() noexcept {
  try {
    static Log* const log = open_log();
    return log;
  } catch (...) {
    return nullptr;  // no memory for a log: no log
  }
}

}  // namespace

bool log_wants(LogLevel level) noexcept {
  const Log* const log = instance();
  return log != nullptr && level != LogLevel::kOff && level >= log->level;
}

void log_write(LogLevel level, std::string_view message) noexcept {
  Log* const log = instance();
  if (log == nullptr) return;
  const int kept = errno;
  try {
    log->logger.log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
  } catch (...) {
    // A log that cannot be written is not worth a program.
  }
  errno = kept;
}

void log_notice(std::string_view message) noexcept {
  Log* const log = instance();
  if (log == nullptr || log->level > LogLevel::kWarn) return;
  const int kept = errno;
  try {
    log->notices.log(spdlog::level::info, spdlog::string_view_t(message.data(), message.size()));
  } catch (...) {
    // A log that cannot be written is not worth a program.
  }
  errno = kept;
}

}  // namespace memopt::agent
