// The integer programme as a module that is loaded when it is asked for: CBC and what it needs would otherwise be
// loaded at every start, and be missing on machines to which the tools are carried. Between module and program nothing
// is handed over but plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

struct ModuleAnswer {
  bool found = false;
  bool optimal = false;
  bool infeasible = false;
  std::uint64_t lower_bound = 0;
  char failure[200] = {};  // why there is no answer; empty if there is one
};

// `offsets` has room for one of each buffer.
using ModuleRun = void (*)(const Problem& problem, const Limits& limits, std::uint64_t* offsets, ModuleAnswer& answer);
inline constexpr char kModuleRun[] = "memopt_integer_program";
// Module and program must be of one build: they share the layout of the types above.
inline constexpr char kModuleVersion[] = "memopt_integer_program_version";
inline constexpr char kModuleFile[] = "libmemopt_integer_program.so";

}  // namespace memopt::layout
