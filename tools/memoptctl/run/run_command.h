// `memoptctl run`: becomes the program, with memopt preloaded.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace memopt::tools {

inline constexpr int kExitSetup = 125;          // memopt's own files are missing (as env and timeout have it)
inline constexpr int kExitNotExecutable = 126;  // as in a shell
inline constexpr int kExitNotFound = 127;

struct RunOptions {
  std::optional<std::string> simulated_device;  // preset or device file
  bool disable = false;
  bool no_files = false;   // goes without memopt.toml
  bool native = false;     // without memopt: on the simulated device, to compare with
  std::string limit;       // MEMOPT_LIMIT; empty: as it is in the environment
  std::string host_limit;  // MEMOPT_HOST_LIMIT, likewise
  std::vector<std::string> command;
};

// Returns only when the program could not be started: the exit code, after a message on standard error.
int run(const RunOptions& options);

// The two steps of it. Sets this process's environment for the program: 0, or the exit code after a message.
int prepare_environment(const RunOptions& options);
// Becomes `command`; returns only when that failed: the exit code, after a message.
int execute(const std::vector<std::string>& command);

// A value for LD_PRELOAD: `library`, then what `existing` (may be null) names, each once: a nested run does not load it
// twice.
std::string preload_with(const std::string& library, const char* existing);
// The same with `libraries` behind what `existing` names.
std::string preload_behind(const std::vector<std::string>& libraries, const std::string& existing);

}  // namespace memopt::tools
