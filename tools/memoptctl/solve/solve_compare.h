// `memoptctl solve --compare`: all solvers on a folder of instances.
#pragma once

#include "tools/memoptctl/solve/solve_command.h"

namespace memopt::tools {

// Prints a table: a row for each .csv and .csv.gz below the folder, a column for each solver. 0, or kExitBadInput where
// a file could not be read (the others are shown), or kExitError if there was none.
int compare_solvers(const SolveOptions& options);

}  // namespace memopt::tools
