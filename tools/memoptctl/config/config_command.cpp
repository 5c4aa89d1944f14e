#include "tools/memoptctl/config/config_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "planner/json/tree.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"

namespace memopt::tools {
namespace {

ConfigFiles find_from_here() {
  std::error_code error;
  // Nothing above a folder that was removed.
  return find_config_files(std::filesystem::current_path(error), environ);
}

// Variables with our prefix that the table does not have, and nothing reads.
std::vector<std::string> unknown_variables() {
  std::vector<std::string> names, lines;
  for (const shm::Option& option : shm::kOptions) names.emplace_back(option.name);
  for (const char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!name.starts_with(shm::kOptionPrefix) || shm::find_option(name) != nullptr) continue;
    const std::string meant = nearest(name, names);
    lines.push_back(fmt::format("{} is no option of memopt{}", printable(name, 60),
                                meant.empty() ? "" : fmt::format(", did you mean {}?", meant)));
  }
  return lines;
}

void print_table(const std::vector<Setting>& all) {
  std::size_t name_width = 0, value_width = 0;
  constexpr std::size_t kLongest = 32;
  const auto shown = [](const Setting& setting) {
    return setting.value.empty() ? "-" : printable(setting.value, kLongest);
  };
  for (const Setting& setting : all) {
    name_width = std::max(name_width, shm::config_key(shm::option(setting.id)).size());
    value_width = std::max(value_width, width(shown(setting)));
  }
  for (const Setting& setting : all) {
    const std::string value = shown(setting);
    fmt::print("{:<{}}  {}{}  {}\n", shm::config_key(shm::option(setting.id)), name_width, value,
               std::string(value_width - width(value), ' '),
               setting.where.empty() ? name_of(setting.origin)
                                     : fmt::format("{} ({})", name_of(setting.origin), printable(setting.where, 300)));
    if (!setting.fault.empty()) fmt::print("{:<{}}  {}\n", "", name_width, setting.fault);
  }
}

void print_json(const std::vector<Setting>& all, const ConfigFiles& files, const std::vector<std::string>& notes) {
  const auto path = [](const std::optional<std::filesystem::path>& file) {
    return file ? nlohmann::json(file->string()) : nlohmann::json();
  };
  nlohmann::json listed = nlohmann::json::array();
  for (const Setting& setting : all) {
    const shm::Option& option = shm::option(setting.id);
    listed.push_back(
        {{"name", shm::config_key(option)},
         {"variable", option.name},
         {"value", setting.value.empty() ? nlohmann::json() : nlohmann::json(setting.value)},
         {"origin", name_of(setting.origin)},
         {"where", setting.where},
         {"fault", setting.fault},
         {"default", option.default_value.empty() ? nlohmann::json() : nlohmann::json(option.default_value)},
         {"values", option.values},
         {"help", option.help}});
  }
  const nlohmann::json whole = {{"format", 1},
                                {"files", {{"project", path(files.project)}, {"user", path(files.user)}}},
                                {"notes", notes},
                                {"settings", listed}};
  fmt::print("{}\n", whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int config(const ConfigOptions& options) {
  const ConfigFiles files = options.no_files ? ConfigFiles() : find_from_here();
  const std::vector<Setting> all = settings(options.line, files, environ);
  std::vector<std::string> notes = files.notes;
  for (std::string& line : unknown_variables()) notes.push_back(std::move(line));
  if (options.json) {
    print_json(all, files, notes);
  } else {
    print_table(all);
    for (const std::string& note : notes) fmt::print("note: {}\n", note);
  }
  return std::any_of(all.begin(), all.end(), [](const Setting& setting) { return !setting.fault.empty(); }) ? 1 : 0;
}

void take_config_files() {
  const ConfigFiles files = find_from_here();
  for (const std::string& note : files.notes) fmt::print(stderr, "memoptctl: {}\n", note);
  take_settings(settings({}, files, environ));
}

void take_settings(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (setting.origin != Origin::kProject && setting.origin != Origin::kUser) continue;
    const std::string name(shm::option(setting.id).name);
    if (::setenv(name.c_str(), setting.value.c_str(), 1) != 0) {
      throw ConfigError(fmt::format("{}: {} can't be set: {}", printable(setting.where), name, std::strerror(errno)));
    }
  }
}

}  // namespace memopt::tools
