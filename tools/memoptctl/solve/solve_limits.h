// How long `memoptctl solve` goes on: its options, and the first interrupt.
#pragma once

#include "planner/layout/problem/limits.h"
#include "tools/memoptctl/solve/solve_command.h"

namespace memopt::tools {

// From the first call on, the first SIGINT ends a search (what was found is reported), the second the process.
layout::Limits solve_limits(const SolveOptions& options, double default_seconds);

}  // namespace memopt::tools
