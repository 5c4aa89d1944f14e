// The names that --sim takes.
#pragma once

#include <string>
#include <vector>

namespace memopt::tools {

// The simulated driver's own devices (integration/cudasim/driver/presets).
std::vector<std::string> simulated_devices();

// Why there is no such simulated device; empty: it is one of these, or a file that can be read.
std::string simulated_device_fault(const std::string& name);

}  // namespace memopt::tools
