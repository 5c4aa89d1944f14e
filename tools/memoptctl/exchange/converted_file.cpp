#include "tools/memoptctl/exchange/converted_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "planner/exchange/pickle.h"
#include "planner/recording/format.h"
#include "planner/recording/writer.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

constexpr std::array<std::pair<std::string_view, ForeignFormat>, 3> kFormats{
    {{"csv", ForeignFormat::kOperations},
     {"minimalloc", ForeignFormat::kBuffers},
     {"pytorch-snapshot", ForeignFormat::kSnapshot}}};

exchange::Counts read(input::File& file, planner::RecordingWriter& writer, const Conversion& conversion) {
  switch (conversion.format) {
    case ForeignFormat::kOperations:
      return exchange::read_operations_csv(file, writer);
    case ForeignFormat::kBuffers:
      return exchange::read_buffers(file, writer, conversion.iterations);
    case ForeignFormat::kSnapshot:
      return exchange::read_snapshot(file, writer);
  }
  return {};
}

}  // namespace

std::optional<ForeignFormat> foreign_format(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string_view name_of(ForeignFormat format) {
  for (const auto& [name, known] : kFormats) {
    if (known == format) return name;
  }
  return "";
}

std::optional<ForeignFormat> find_format(const input::File& file) {
  if (planner::recording::is_recording(file.head())) return std::nullopt;
  if (exchange::Pickle::begins(file.head())) return ForeignFormat::kSnapshot;
  if (exchange::is_operations_csv(file.head())) return ForeignFormat::kOperations;
  if (exchange::is_buffers(file.head())) return ForeignFormat::kBuffers;
  return std::nullopt;
}

exchange::Counts convert(input::File& file, int fd, const Conversion& conversion) {
  planner::RecordingInfo info;
  info.program = file.path();
  info.arguments = {file.path()};
  info.version = conversion.version;
  std::string why;
  planner::RecordingWriter writer(fd, info, [&](const std::string& reason) { why = reason; });
  exchange::Counts counts = read(file, writer, conversion);
  if (!writer.finish()) throw std::runtime_error("the recording " + (why.empty() ? "can't be written" : why));
  return counts;
}

input::File open_recording(const std::string& path) {
  input::File file(path);
  const std::optional<ForeignFormat> format = find_format(file);
  if (!format) return file;
  const int fd = ::memfd_create("memopt-recording", MFD_CLOEXEC);
  const int own = fd < 0 ? -1 : ::dup(fd);
  if (own < 0) {
    if (fd >= 0) ::close(fd);
    throw std::runtime_error(fmt::format("memory for a recording: {}", std::strerror(errno)));
  }
  std::string bytes;
  try {
    convert(file, fd, {.format = *format, .iterations = kIterations, .version = {}});
    bytes.resize(static_cast<std::size_t>(::lseek(own, 0, SEEK_END)));
    std::size_t at = 0;
    while (at < bytes.size()) {
      const ssize_t got = ::pread(own, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
      if (got <= 0) throw std::runtime_error("memory for a recording can't be read");
      at += static_cast<std::size_t>(got);
    }
  } catch (...) {
    ::close(own);
    throw;
  }
  ::close(own);
  return input::File::holding(std::move(bytes), path);
}

}  // namespace memopt::tools
