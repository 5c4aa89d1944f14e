// `memoptctl doctor`: looks at everything that memopt needs, and says what is wrong and what to do.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace memopt::tools {

struct DoctorOptions {
  bool json = false;
  double seconds = 10;  // that the program runs at most
  std::optional<std::string> simulated_device;
  std::vector<std::string> command;  // may be empty
  bool no_files = false;             // memopt.toml is not read
  std::string version;
};

// 0: no problem (warnings do not count); 1: at least one.
int doctor(const DoctorOptions& options);

// The child's side of a check; 2 for a name that is none.
int probe(const std::string& name);

}  // namespace memopt::tools
