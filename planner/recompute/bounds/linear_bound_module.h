// The linear bound as a module that is loaded when it is asked for: CLP is not on every machine.
#pragma once

#include <cstdint>

#include "planner/recompute/bounds/linear_bound.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

struct ModuleBound {
  double ns = -1;          // below 0: not found
  char failure[200] = {};  // why there is no answer; empty if there is one
};

// Calls `report` with each bound that is better than the one before; the last call has the best, or says what failed.
using ModuleReport = void (*)(const ModuleBound& bound, void* context);
using ModuleRun = void (*)(const swap::Problem& problem, std::uint64_t budget, double seconds, ModuleReport report,
                           void* context);
inline constexpr char kModuleRun[] = "memopt_recompute_bound";
// Module and program must be of one build: they share the layout of the types above.
inline constexpr char kModuleVersion[] = "memopt_recompute_bound_version";
inline constexpr char kModuleFile[] = "libmemopt_recompute_bounds_module.so";

}  // namespace memopt::recompute
