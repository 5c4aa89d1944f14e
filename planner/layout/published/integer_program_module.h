// The integer program as a module that is loaded when the user selects it: CBC and its dependencies would otherwise be
// loaded at every start, and be missing on machines to which the tools are copied. Module and program exchange plain
// values only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

struct ModuleAnswer {
  bool found = false;
  bool optimal = false;
  bool infeasible = false;
  std::uint64_t lower_bound = 0;
  char failure[200] = {};  // why it failed; empty if it did not
};

// `offsets` has one element for each buffer.
using ModuleRun = void (*)(const Problem& problem, const Limits& limits, std::uint64_t* offsets, ModuleAnswer& answer);
inline constexpr char kModuleRun[] = "memopt_integer_program";
// Module and program must be of one build: they share the layout of the types above.
inline constexpr char kModuleVersion[] = "memopt_integer_program_version";
inline constexpr char kModuleFile[] = "libmemopt_integer_program.so";

}  // namespace memopt::layout
