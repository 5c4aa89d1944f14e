// The bounds as a module that is loaded when they are asked for: CLP and what it needs would otherwise be loaded at
// every start, and be missing on machines to which the tools are carried.
#pragma once

#include <cstdint>

#include "planner/swap/model/model.h"

namespace memopt::swap {

struct ModuleBounds {
  double least_footprint = -1;   // bytes, at no added time; below 0: not found
  double least_added_time = -1;  // ns, under the limit; below 0: not found, or no limit was given
  char failure[200] = {};        // why there is no answer; empty if there is one
};

// `limit`: bytes, or kNever.
using ModuleRun = void (*)(const Problem& problem, std::uint64_t limit, ModuleBounds& bounds);
inline constexpr char kModuleRun[] = "memopt_swap_bounds";
// Module and program must be of one build: they share the layout of the types above.
inline constexpr char kModuleVersion[] = "memopt_swap_bounds_version";
inline constexpr char kModuleFile[] = "libmemopt_swap_bounds_module.so";

}  // namespace memopt::swap
