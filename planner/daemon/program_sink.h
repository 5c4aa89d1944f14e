// What memoptd does with a program's operations: it plans.
#pragma once

#include <memory>

#include "planner/daemon/sink.h"

namespace memopt::planner {

std::unique_ptr<Sink> make_program_sink(const ProgramInfo& program);

}  // namespace memopt::planner
