#include "tools/memoptctl/fit/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <stdexcept>
#include <system_error>

#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/run/limited_process.h"

namespace memopt::tools {
namespace {

// More than any device has, so that what does not fit shows by numbers, not by an error of the program.
constexpr const char* kCapacity = "1048576M";
constexpr std::size_t kShownLines = 12;
constexpr std::chrono::milliseconds kLook{200};

// The last lines, for people.
std::string end_of(const std::string& output) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    if (end > at) lines.push_back(printable(std::string_view(output).substr(at, end - at)));
    at = end + 1;
  }
  std::string text;
  const std::size_t from = lines.size() > kShownLines ? lines.size() - kShownLines : 0;
  for (std::size_t i = from; i < lines.size(); ++i) text += "\n  " + lines[i];
  return text;
}

// Of several processes, the one with most to say.
std::string largest_recording(const std::string& folder, std::size_t& found) {
  std::string largest;
  std::uintmax_t most = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    const std::uintmax_t bytes = file.file_size(error);
    if (error || bytes == 0) continue;
    ++found;
    if (bytes > most) {
      most = bytes;
      largest = file.path();
    }
  }
  return largest;
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const std::filesystem::path base = std::filesystem::temp_directory_path(error);
  std::string path = (error ? "/tmp" : base.string()) + "/memopt-fit-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    throw std::runtime_error(fmt::format("{}: can't be made: {}", printable(path), std::strerror(errno)));
  }
  path_ = path;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string missing_in(const std::string& output) {
  static const std::regex library(R"(([A-Za-z0-9_.+-]+\.so[A-Za-z0-9_.+-]*): cannot open shared object file)");
  static const std::regex module(R"(ModuleNotFoundError: No module named '([^'\n]{1,100})')");
  static const std::regex symbol(R"(undefined symbol: ([A-Za-z0-9_@.]{1,200}))");
  std::smatch match;
  if (std::regex_search(output, match, library)) {
    return fmt::format(
        "it needs {}, which neither this machine nor the simulated device has: install it, or record the program where "
        "it "
        "runs (memoptctl record) and give the recording to fit",
        match[1].str());
  }
  if (std::regex_search(output, match, module)) {
    return fmt::format("it needs Python's module {}: install it for the interpreter in the command", match[1].str());
  }
  if (std::regex_search(output, match, symbol)) {
    return fmt::format(
        "it calls {}, which the simulated device does not have: record the program where it runs (memoptctl record) "
        "and "
        "give the recording to fit",
        match[1].str());
  }
  return "";
}

DryRun run_dry(const DryRunOptions& options, const ScratchFolder& folder) {
  // What an earlier run left is not this one's.
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder.path(), ignored)) {
    std::filesystem::remove_all(file.path(), ignored);
  }
  LimitedCommand command;
  command.command = {own_program(), "record", "-o", folder.path() + "/program.rec", "--sim", options.simulated, "--"};
  command.command.insert(command.command.end(), options.command.begin(), options.command.end());
  // What the caller has set for another run would change this one.
  command.environment = {{"CUDASIM_CAPACITY", kCapacity},
                         {"CUDASIM_REPORT", "off"},
                         {"MEMOPT_LIMIT", std::nullopt},
                         {"MEMOPT_SWAP", std::nullopt}};
  command.limit = options.limit;
  LimitedProcess process(command);
  DryRun result;
  while (process.run_for(kLook)) {
    if (interrupted()) {
      process.stop();
      result.fault = "interrupted";
      return result;
    }
  }
  result.stopped = process.timed_out();
  std::size_t found = 0;
  result.recording = largest_recording(folder.path(), found);
  if (!result.stopped && !process.ok()) {
    const std::string output = process.output() + process.errors();
    const std::string missing = missing_in(output);
    result.recording.clear();
    result.fault = fmt::format("the program did not run on the simulated device: {}{}{}", process.how_it_ended(),
                               missing.empty() ? "" : "; " + missing, end_of(output));
    return result;
  }
  if (result.recording.empty()) {
    const std::string missing = missing_in(process.output() + process.errors());
    result.fault =
        "no call of CUDA was seen: no CUDA program, or one that goes past memopt (memoptctl doctor says more)" +
        (missing.empty() ? "" : "; " + missing);
  } else if (found > 1) {
    result.note = fmt::format("it is {} processes: the one with most operations is looked at", found);
  }
  return result;
}

}  // namespace memopt::tools
