#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/config/config_command.h"
#include "tools/memoptctl/config/config_file.h"
#include "tools/memoptctl/config/settings.h"
#include "tools/memoptctl/doctor/checks.h"

namespace memopt::tools {

void check_config(Report& report) {
  constexpr const char* kName = "configuration";
  constexpr std::size_t kLongestPath = 300;
  std::error_code error;
  const ConfigFiles files = find_config_files(std::filesystem::current_path(error), environ);
  for (const std::string& note : files.notes) {
    report.add(kName, Verdict::kWarning, note, "memoptctl config says what holds");
  }
  try {
    const std::vector<Setting> all = settings({}, files, environ);
    std::string set;
    for (const Setting& setting : all) {
      if (setting.origin != Origin::kProject && setting.origin != Origin::kUser) continue;
      set += fmt::format("{}{} = {} ({})", set.empty() ? "" : ", ", shm::config_key(shm::option(setting.id)),
                         printable(setting.value), printable(setting.where, kLongestPath));
    }
    take_settings(all);
    if (!set.empty()) report.add(kName, Verdict::kOk, "set by memopt.toml: " + set);
  } catch (const ConfigError& fault) {
    report.add(kName, Verdict::kProblem, fault.what(),
               "correct it, as run and record refuse to start with it; or leave it out (--no-config)");
  }
}

}  // namespace memopt::tools
