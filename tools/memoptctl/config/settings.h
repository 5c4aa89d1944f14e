// What holds of each option, and where from: the line, the environment, a project's memopt.toml, the user's, the table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shm/options.h"
#include "tools/memoptctl/config/config_file.h"

namespace memopt::tools {

// From what prevails over all others to what gives way to all.
enum class Origin : std::uint8_t { kLine, kEnvironment, kProject, kUser, kDefault };
const char* name_of(Origin origin);  // "line", "environment", "project", "user", "default"

struct Setting {
  shm::OptionId id{};
  std::string value;  // empty: none
  Origin origin = Origin::kDefault;
  std::string where;  // "--limit", "MEMOPT_LIMIT", "/home/x/memopt.toml:3"; empty for a default
  std::string fault;  // of an environment variable that is not accepted; files with faults are not read at all
};

// What options of the line say, by the option that they stand for; only those that were given.
using LineSettings = std::map<shm::OptionId, std::string>;

struct ConfigFiles {
  std::optional<std::filesystem::path> project, user;
  std::vector<std::string> notes;  // files that were found and are not read, and why
};

// The nearest memopt.toml in `folder` or above it, and that below $XDG_CONFIG_HOME or ~/.config. Files that another
// user but root owns are not taken.
ConfigFiles find_config_files(const std::filesystem::path& folder, const char* const* environment);

// One for each option, in the order of the table. Throws ConfigError (files with a fault).
std::vector<Setting> settings(const LineSettings& line, const ConfigFiles& files, const char* const* environment);

}  // namespace memopt::tools
