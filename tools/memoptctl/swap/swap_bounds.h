// The lower bounds of planner/swap/bounds/bounds.h, by a module that is loaded when they are asked for, in a process of
// its own: a linear programme can take minutes, and CLP looks at a clock only now and then.
#pragma once

#include <cstdint>

#include "planner/swap/bounds/bounds_module.h"
#include "planner/swap/model/model.h"

namespace memopt::tools {

// With problem.limit the least added time, too. Where there is no answer in that time (a child process is ended then),
// or the module is missing, `failure` says so. To be called by programs without other threads.
swap::ModuleBounds swap_bounds(const swap::Problem& problem, double seconds);

}  // namespace memopt::tools
