#include "tools/memoptctl/run/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "shm/frameworks.h"
#include "shm/options.h"
#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/config/config_command.h"
#include "tools/memoptctl/run/simulated_device.h"

namespace memopt::tools {
namespace {

int fail(int code, const std::string& why) {
  fmt::print(stderr, "memoptctl: {}\n", why);
  return code;
}

// What the loader would split into two names, or cut.
bool loader_takes(const std::string& path) { return path.find_first_of(" :\t\n;") == std::string::npos; }

bool set(const char* name, const std::string& value) { return ::setenv(name, value.c_str(), 1) == 0; }

// What is in the environment gives way to the line.
bool set_option(shm::OptionId id, const std::string& value) {
  return value.empty() || set(std::string(shm::option(id).name).c_str(), value);
}

}  // namespace

std::string preload_with(const std::string& library, const char* existing) {
  std::string result = library;
  std::string_view rest = existing == nullptr ? "" : existing;
  while (!rest.empty()) {
    const std::size_t end = rest.find_first_of(": ");
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (entry.empty() || entry == library) continue;
    result += ':';
    result += entry;
  }
  return result;
}

std::string preload_behind(const std::vector<std::string>& libraries, const std::string& existing) {
  std::string result = existing;
  for (const std::string& library : libraries) {
    if ((":" + existing + ":").find(":" + library + ":") != std::string::npos) continue;
    if (!result.empty()) result += ':';
    result += library;
  }
  return result;
}

namespace {

// Adds libmemopt.so and what tells frameworks to leave their pools off; nothing of it for a native run.
int prepare_memopt(const RunOptions& options, std::string& preload, bool& fits) {
  const auto library = find_library();
  if (!library)
    return fail(kExitSetup, "libmemopt.so is missing (looked in ../lib beside memoptctl and in the build folder)");
  if (!loader_takes(library->string())) {
    return fail(kExitSetup,
                fmt::format("{}: LD_PRELOAD can't hold a path with blanks, colons or semicolons", library->string()));
  }
  preload = preload_with(library->string(), preload.c_str());
  if (options.disable) fits = fits && set("MEMOPT_DISABLE", "1");
  fits = fits && set_option(shm::OptionId::kLimit, options.limit) &&
         set_option(shm::OptionId::kHostLimit, options.host_limit);
  // The library does the same when it is loaded. That is too late for a program that is linked to its framework: the
  // framework reads the environment before.
  for (const shm::FrameworkSetting& setting : shm::framework_settings(shm::framework_route_of(environ), environ)) {
    fits = fits && set(std::string(setting.variable).c_str(), setting.value);
  }
  return 0;
}

int prepare_simulator(const std::string& device, std::string& preload, bool& fits) {
  const auto folder = find_simulator_folder();
  if (!folder)
    return fail(kExitSetup,
                "the simulated driver is missing (looked for cudasim/lib/libcuda.so.1 in the build folder)");
  if (!loader_takes(folder->string())) {
    return fail(kExitSetup, fmt::format("{}: LD_LIBRARY_PATH can't hold a path with blanks, colons or semicolons",
                                        folder->string()));
  }
  const char* existing = std::getenv("LD_LIBRARY_PATH");
  const bool none = existing == nullptr || *existing == '\0';
  fits = fits && set("CUDASIM_DEVICE", device) &&
         set("LD_LIBRARY_PATH", none ? folder->string() : folder->string() + ":" + existing);
  // Behind memopt: what it interposes must be found before anything of the same name.
  const StandIns replaced = stand_ins(*folder);
  preload = preload_behind(replaced.preload, preload);
  for (const auto& [name, value] : replaced.variables) fits = fits && ::setenv(name.c_str(), value.c_str(), 0) == 0;
  return 0;
}

}  // namespace

int prepare_environment(const RunOptions& options) {
  const char* const existing = std::getenv("LD_PRELOAD");
  std::string preload = existing == nullptr ? "" : existing;
  bool fits = true;
  if (!options.native && !options.no_files) {
    try {
      take_config_files();
    } catch (const ConfigError& error) {
      return fail(kExitSetup, error.what());
    }
  }
  if (!options.native) {
    if (const int failed = prepare_memopt(options, preload, fits); failed != 0) return failed;
  }
  if (options.simulated_device) {
    if (const int failed = prepare_simulator(*options.simulated_device, preload, fits); failed != 0) return failed;
  }
  // Sanitised libraries need the sanitizer's runtime before them; empty in other builds.
  if (std::string_view prefix = MEMOPT_PRELOAD_PREFIX; !prefix.empty()) {
    prefix.remove_suffix(1);  // its colon
    preload = preload_with(std::string(prefix), preload.c_str());
  }
  fits = fits && set("LD_PRELOAD", preload);
  if (!fits) return fail(kExitSetup, fmt::format("the environment could not be set: {}", std::strerror(errno)));
  return 0;
}

int execute(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  const std::string name = printable(command[0]);
  if (error == ENOENT) {
    // A script whose interpreter is missing gives the same error as a missing file.
    const bool there = command[0].find('/') != std::string::npos && ::access(command[0].c_str(), F_OK) == 0;
    return fail(kExitNotFound,
                there ? fmt::format("{}: its interpreter is missing", name) : fmt::format("{}: no such program", name));
  }
  return fail(kExitNotExecutable, fmt::format("{}: can't be executed: {}", name, std::strerror(error)));
}

int run(const RunOptions& options) {
  const int failed = prepare_environment(options);
  return failed != 0 ? failed : execute(options.command);
}

}  // namespace memopt::tools
