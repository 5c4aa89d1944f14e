// `memoptctl config`: what holds, and where from. And the same for a program that is to be started.
#pragma once

#include <string>
#include <vector>

#include "tools/memoptctl/config/settings.h"

namespace memopt::tools {

struct ConfigOptions {
  bool json = false;
  bool no_files = false;
  LineSettings line;
};

// 0; 1 where a file has a fault or the environment holds what is not accepted.
int config(const ConfigOptions& options);

// Puts what files say, and the environment does not, into the environment of this process. Throws ConfigError.
void take_settings(const std::vector<Setting>& settings);
// Those of the files of the working directory. Prints notes on files that are not read to standard error.
void take_config_files();

}  // namespace memopt::tools
