// The names that --sim takes, and what the simulated device brings along.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace memopt::tools {

// The simulated driver's own devices (integration/cudasim/driver/presets).
std::vector<std::string> simulated_devices();

// Why there is no such simulated device; empty: it is one of these, or a file that can be read.
std::string simulated_device_fault(const std::string& name);

// What takes the places of NVIDIA's libraries there: files to preload, and environment variables for programs that
// can't do with it all. Empty where the build has none.
struct StandIns {
  std::vector<std::string> preload;                            // whole paths
  std::vector<std::pair<std::string, std::string>> variables;  // set where the user has set nothing
};
StandIns stand_ins(const std::filesystem::path& simulator_folder);

}  // namespace memopt::tools
