// Kernel tables of the simulator of G10 (Zhang et al., "G10: Enabling An Efficient Unified GPU Memory and Storage
// Architecture with Smart Tensor Migrations", MICRO 2023): kernels.config, which names each kernel's cycles, inputs and
// outputs. docs/formats/g10-tables.md has them.
//
// A table is one iteration. Kernels follow each other, each one launch. Weights are persistent; any other tensor is
// allocated in front of the first kernel that names it, and freed behind the last.
#pragma once

#include "planner/input/file.h"
#include "planner/swap/files/plan_file.h"

namespace memopt::swap {

// By the first line.
bool is_g10_table(const input::File& file);

// Takes the file. Times are in whole nanoseconds; a block has its tensor's number. Throws Invalid, with the name and
// the line: what is no such table, or a tensor that is not as it was before.
PlanFile read_g10_table(input::File& file);

}  // namespace memopt::swap
