// Logs of eager PyTorch programs as DTR's simulator takes them (Kirisame et al., "Dynamic Tensor Rematerialization",
// ICLR 2021, section 5): one instruction a line, as JSON. docs/formats/dtr-log.md has them.
//
// From the instruction START on, a log is one iteration. Tensors that share memory (aliases, copies of names) are one
// block, freed when the last name is released. A call is one launch: what it reads, and what it makes or changes in
// place; calls follow each other, each for as long as it took. What is there before the first call and still has a name
// at the end is persistent; all else that has a name at the end is freed there.
#pragma once

#include "planner/input/file.h"
#include "planner/swap/files/plan_file.h"

namespace memopt::swap {

// By the first line.
bool is_dtr_log(const input::File& file);

// Takes the file. Times are in nanoseconds, blocks are named by the operator that made them. Throws Invalid, with the
// name and the line: no such log, an instruction or a tensor that is unknown, or nothing is called.
PlanFile read_dtr_log(input::File& file);

}  // namespace memopt::swap
