#include "device/timeline_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace cudasim {
namespace {

constexpr std::size_t kFlushedAt = std::size_t{1} << 16;

constexpr std::array<std::pair<Resource, std::string_view>, 4> kRows{{{Resource::kCompute, "kernels"},
                                                                      {Resource::kCopyIn, "copies in"},
                                                                      {Resource::kCopyOut, "copies out"},
                                                                      {Resource::kHostFunction, "host functions"}}};

// Nanoseconds as microseconds.
std::string microseconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld.%03lld", static_cast<long long>(time.count() / 1000),
                static_cast<long long>(time.count() % 1000));
  return text.data();
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string row(Resource resource) { return std::to_string(static_cast<int>(resource)); }

}  // namespace

TimelineFile::TimelineFile(const std::string& path) {
  if (path.empty()) return;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) {
    std::fprintf(stderr, "cudasim: CUDASIM_TIMELINE: %s can't be written: %s\n", path.c_str(), std::strerror(errno));
    return;
  }
  text_ = "[";
  for (const auto& [resource, name] : kRows) {
    text_ += std::string(text_.size() == 1 ? "" : ",") +
             "\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":" + row(resource) +
             ",\"args\":{\"name\":" + json_text(name) + "}}";
  }
}

TimelineFile::~TimelineFile() {
  flush();
  if (file_ >= 0) close(file_);
}

void TimelineFile::add(const Operation& operation) {
  if (file_ < 0 || operation.work.resource == Resource::kNone) return;
  text_ += ",\n{\"name\":" + json_text(operation.work.name) +
           ",\"ph\":\"X\",\"pid\":1,\"tid\":" + row(operation.work.resource) +
           ",\"ts\":" + microseconds(operation.start.time_since_epoch()) +
           ",\"dur\":" + microseconds(operation.end - operation.start) +
           ",\"args\":{\"stream\":" + std::to_string(static_cast<unsigned>(operation.actor)) +
           ",\"ready\":" + microseconds(operation.ready.time_since_epoch()) + "}}";
  if (text_.size() >= kFlushedAt) flush();
}

void TimelineFile::finish() {
  if (file_ < 0) return;
  text_ += "\n]\n";
  flush();
  if (file_ >= 0) close(std::exchange(file_, -1));
}

void TimelineFile::flush() {
  for (std::size_t done = 0; file_ >= 0 && done < text_.size();) {
    const ssize_t count = write(file_, text_.data() + done, text_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      std::fprintf(stderr, "cudasim: CUDASIM_TIMELINE: not written any further: %s\n", std::strerror(errno));
      close(std::exchange(file_, -1));
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  text_.clear();
}

}  // namespace cudasim
