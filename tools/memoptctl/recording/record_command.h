// `memoptctl record`: runs a program as its parent, and writes what it does with the device into a file.
#pragma once

#include <string>

#include "tools/memoptctl/run/run_command.h"

namespace memopt::tools {

struct RecordOptions {
  RunOptions run;
  std::string output;
  bool force = false;   // overwrite
  std::string version;  // of this memoptctl, for the file
};

// The program's exit code, 128 + its signal, or 125, 126, 127 as for run().
int record(const RecordOptions& options);

}  // namespace memopt::tools
