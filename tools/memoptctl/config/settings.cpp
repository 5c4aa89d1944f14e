#include "tools/memoptctl/config/settings.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <system_error>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "memopt.toml";

std::optional<std::string_view> variable(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// Is there such a file, and is it ours or root's? What another user put into a folder above ours, /tmp for example,
// must not set anything.
bool takes(const fs::path& path, std::vector<std::string>& notes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  if (info.st_uid == 0 || info.st_uid == ::geteuid()) return true;
  notes.push_back(fmt::format("{} belongs to another user and is not read", printable(path.string())));
  return false;
}

}  // namespace

const char* name_of(Origin origin) {
  constexpr std::array<const char*, 5> kNames = {"line", "environment", "project", "user", "default"};
  return kNames.at(static_cast<std::size_t>(origin));
}

ConfigFiles find_config_files(const fs::path& folder, const char* const* environment) {
  ConfigFiles files;
  for (fs::path above = folder; above.is_absolute(); above = above.parent_path()) {
    if (takes(above / kFile, files.notes)) {
      files.project = above / kFile;
      break;
    }
    if (above == above.root_path()) break;
  }
  fs::path user;
  // Relative ones are to be ignored (XDG Base Directory Specification).
  if (const auto configured = variable(environment, "XDG_CONFIG_HOME"); configured && configured->starts_with('/')) {
    user = *configured;
  } else if (const auto home = variable(environment, "HOME"); home && home->starts_with('/')) {
    user = fs::path(*home) / ".config";
  }
  if (!user.empty() && takes(user / "memopt" / kFile, files.notes)) files.user = user / "memopt" / kFile;
  return files;
}

std::vector<Setting> settings(const LineSettings& line, const ConfigFiles& files, const char* const* environment) {
  std::vector<Setting> all;
  for (std::size_t i = 0; i < shm::kOptions.size(); ++i) {
    all.push_back(
        {static_cast<shm::OptionId>(i), std::string(shm::kOptions[i].default_value), Origin::kDefault, "", ""});
  }
  const auto read = [&](const std::optional<fs::path>& path, ConfigScope scope, Origin origin) {
    if (!path) return;
    for (FileSetting& found : read_config(*path, scope)) {
      all[static_cast<std::size_t>(found.id)] = {found.id, std::move(found.value), origin,
                                                 fmt::format("{}:{}", path->string(), found.line), ""};
    }
  };
  read(files.user, ConfigScope::kUser, Origin::kUser);
  read(files.project, ConfigScope::kProject, Origin::kProject);
  for (Setting& setting : all) {
    const shm::Option& option = shm::option(setting.id);
    if (const auto value = variable(environment, option.name)) {
      std::string fault;
      if (!option.accepts(*value)) {
        fault = fmt::format("expected {}; {} holds", option.values,
                            option.default_value.empty() ? "nothing" : option.default_value);
      }
      setting = {setting.id, std::string(*value), Origin::kEnvironment, std::string(option.name), std::move(fault)};
    }
    if (const auto given = line.find(setting.id); given != line.end()) {
      setting = {setting.id, given->second, Origin::kLine, std::string(option.flag), ""};
    }
  }
  return all;
}

}  // namespace memopt::tools
