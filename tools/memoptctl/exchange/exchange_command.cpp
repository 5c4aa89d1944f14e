#include "tools/memoptctl/exchange/exchange_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "planner/recording/reader.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/partial_file.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/exchange/converted_file.h"

namespace memopt::tools {
namespace {

constexpr int kExitWrongUse = 2;

using Write = exchange::Counts (*)(input::File&, std::ostream&);
constexpr std::array<std::pair<std::string_view, Write>, 4> kExports{{{"perfetto", exchange::write_trace_events},
                                                                      {"pytorch-snapshot", exchange::write_snapshot},
                                                                      {"csv", exchange::write_operations_csv},
                                                                      {"minimalloc", exchange::write_buffers}}};

// On standard error, as the result may be on standard output.
int report(const std::string& name, const exchange::Counts& counts) {
  if (counts.left_out != 0) {
    fmt::print(stderr, "memoptctl: {}: {} operations are left out: of blocks whose allocation is not in it, or twice\n",
               name, counts.left_out);
  }
  if (!counts.note.empty()) fmt::print(stderr, "memoptctl: {}: {}\n", name, printable(counts.note, 2000));
  if (counts.damage.empty()) return 0;
  fmt::print(stderr, "memoptctl: {}: {}\n", name, printable(counts.damage, 2000));
  return 1;
}

}  // namespace

const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& one : kExports) all.emplace_back(one.first);
    return all;
  }();
  return names;
}

int export_recording(const ExportOptions& options) {
  Write write = nullptr;
  for (const auto& [name, function] : kExports) {
    if (name == options.format) write = function;
  }
  if (write == nullptr) throw std::logic_error("no format " + options.format);
  const bool to_output = options.output == "-";
  if (to_output && options.format == "pytorch-snapshot" && ::isatty(STDOUT_FILENO) == 1) {
    fmt::print(stderr, "memoptctl: a snapshot is no text for a terminal: expected -o OUT, or a pipe\n");
    return kExitWrongUse;
  }
  if (!to_output) expect_writable(options.output);
  try {
    input::File file = open_recording(options.file);
    if (to_output) {
      const exchange::Counts counts = write(file, std::cout);
      std::cout.flush();
      if (!std::cout)
        throw std::runtime_error(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
      return report(printable(options.file), counts);
    }
    errno = 0;
    std::ofstream out(options.output, std::ios::binary);
    const exchange::Counts counts = write(file, out);
    out.close();
    if (!out) {
      throw std::runtime_error(
          fmt::format("{}: cannot be written: {}", printable(options.output), std::strerror(errno)));
    }
    fmt::print(stderr, "memoptctl: {}: {} operations as {}\n", printable(options.output), counts.operations,
               options.format);
    return report(printable(options.file), counts);
  } catch (const planner::RecordingError& error) {
    throw std::runtime_error(printable(options.file) + ": " + error.what());
  }
}

int import_file(const ImportOptions& options) {
  expect_replaceable(options.output, options.force);
  input::File file(options.file);
  const std::optional<ForeignFormat> format =
      options.format.empty() ? find_format(file) : foreign_format(options.format);
  if (!format) {
    throw std::runtime_error(fmt::format(
        "{}: expected a CSV with a column operation, MiniMalloc's CSV (id,lower,upper,size) or a pickle of PyTorch's",
        printable(options.file)));
  }
  if (options.iterations != 0 && *format != ForeignFormat::kBuffers) {
    fmt::print(stderr, "memoptctl: --iterations is for MiniMalloc's files, and {} is {}\n", printable(options.file),
               name_of(*format));
    return kExitWrongUse;
  }
  const PartialFile partial(options.output);
  const int fd = ::open(partial.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", printable(options.output), std::strerror(errno)));
  }
  const std::uint64_t iterations = options.iterations == 0 ? kIterations : options.iterations;
  const exchange::Counts counts =
      convert(file, fd, {.format = *format, .iterations = iterations, .version = options.version});
  partial.keep();
  fmt::print(stderr, "memoptctl: {}: {} operations of {}\n", printable(options.output), counts.operations,
             name_of(*format));
  return report(printable(options.file), counts);
}

}  // namespace memopt::tools
