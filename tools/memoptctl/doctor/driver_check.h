// The CUDA driver as doctor sees it: found, of which version, with virtual memory management, and do two addresses of
// one chunk show the same bytes? All of it is asked in a child process, so that a driver that crashes or hangs is a
// finding.
#pragma once
#include <optional>
#include <string>

#include "tools/memoptctl/doctor/doctor_report.h"

namespace memopt::tools {

// `simulator`: folder of the simulated driver, if it is the one to look at; `device`: its preset.
void check_driver(Report& report, const std::optional<std::string>& simulator,
                  const std::optional<std::string>& device);

// The child's side (`memoptctl probe driver`): facts as lines on standard output. Returns its exit code.
int probe_driver();

}  // namespace memopt::tools
