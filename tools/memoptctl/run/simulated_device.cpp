#include "tools/memoptctl/run/simulated_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"

namespace memopt::tools {

std::vector<std::string> simulated_devices() {
  std::vector<std::string> names;
  std::istringstream list(MEMOPT_SIMULATED_DEVICES);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

std::string simulated_device_fault(const std::string& name) {
  const std::vector<std::string> names = simulated_devices();
  if (std::find(names.begin(), names.end(), name) != names.end()) return "";
  struct stat info {};
  if (::stat(name.c_str(), &info) == 0 && !S_ISDIR(info.st_mode) && ::access(name.c_str(), R_OK) == 0) return "";
  const std::string meant = nearest(name, names);
  return fmt::format("{} is no simulated device: give {}, or a device file (integration/cudasim/README.md){}",
                     name.empty() ? "an empty name" : printable(name), fmt::join(names, ", "),
                     meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

StandIns stand_ins(const std::filesystem::path& simulator_folder) {
  StandIns found;
  std::ifstream file(simulator_folder / "stand-ins.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, what;
    if (!(words >> kind >> what)) continue;
    std::error_code ignored;
    if (const auto path = simulator_folder / what;
        kind == "preload" && std::filesystem::is_regular_file(path, ignored)) {
      found.preload.push_back(path.string());
    } else if (const std::size_t equals = what.find('='); kind == "default" && equals != std::string::npos) {
      found.variables.emplace_back(what.substr(0, equals), what.substr(equals + 1));
    }
  }
  return found;
}

}  // namespace memopt::tools
