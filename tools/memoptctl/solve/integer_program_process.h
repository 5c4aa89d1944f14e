// The integer programme (planner/layout/published/integer_program.h) in a process of its own: CBC looks at its clock
// only now and then, writes to standard output where it likes, and is loaded only if it is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"
#include "planner/layout/published/integer_program_module.h"

namespace memopt::tools {

// Why it can't be run here; empty: it can.
const std::string& integer_program_missing();

// Half a second after the limit the process is ended: nothing was found then. `offsets` is empty if nothing was found.
// To be called by programs without other threads.
layout::ModuleAnswer run_integer_program(const layout::Problem& problem, const layout::Limits& limits,
                                         std::vector<std::uint64_t>& offsets);

}  // namespace memopt::tools
