// All that the page shows, as values: what the recording says (recorded_program.h), the iteration that planning finds
// in it, block by block, and plans of it within several limits (limit_sweep.h, drawn_plan.h).
//
// Times are nanoseconds, sizes bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/input/file.h"
#include "planner/swap/model/model.h"
#include "tools/memoptctl/plan/file_plan.h"
#include "tools/memoptctl/report/drawn_plan.h"
#include "tools/memoptctl/report/limit_sweep.h"
#include "tools/memoptctl/report/recorded_program.h"

namespace memopt::tools {

struct ReportedBlock {
  std::uint64_t number = 0;  // of a block that stays: the program's own; else the record of its malloc
  std::uint64_t bytes = 0;
  bool persistent = false;  // lives through all iterations
  bool pinned = false;      // may not leave the device
  std::uint32_t stack = kNoStack;
  double born = 0;
  double freed = 0;             // may lie behind the iteration's end
  std::uint32_t accesses = 0;   // by how many steps
  std::uint32_t first_use = 0;  // into ReportedIteration::uses
  std::uint32_t uses = 0;       // of those, as many as are kept
};

// What the device does in one go: a kernel, a copy, a memset.
struct ReportedStep {
  double begin = 0;
  double length = 0;
  StepKind kind = StepKind::kLaunch;
  std::uint32_t name = kNoName;  // of RecordedProgram::operations
};

struct BlockUse {
  std::uint32_t step = 0;
  bool writes = false;
};

struct LoadLevel {
  double at = 0;
  std::uint64_t bytes = 0;  // the most until the next one
};

struct ReportedPlan {
  SweepPoint point;
  bool swaps = true;  // false: the layout that a program under memopt gets without a limit
  std::optional<DrawnPlan> drawn;
};

struct ReportedIteration {
  double period = 0;
  swap::Machine machine;
  std::vector<ReportedBlock> blocks;
  std::vector<ReportedStep> steps;
  std::vector<BlockUse> uses;
  std::vector<LoadLevel> load;
  double peak_at = 0;
  std::uint64_t peak_load = 0;
  std::vector<std::uint32_t> at_peak;  // blocks, largest first; of one that is there several times, each
  std::vector<ReportedPlan> plans;     // the first without swaps
  std::uint64_t least_limit = 0;       // no plan with swaps is below; 0: none was looked for
  std::size_t left_out = 0;            // limits for which there was no time
  bool interrupted = false;
};

struct ReportModel {
  RecordedProgram program;
  FilePlanning planning;
  std::optional<ReportedIteration> iteration;
  std::string no_iteration;  // why there is none that can be drawn; empty: there is
  std::string no_swaps;      // why there are no plans within limits; empty: there are
};

struct ModelOptions {
  std::string limit;    // as for `plan --limit`; may be empty
  std::string machine;  // as for `plan --machine`; empty: the recording's
  SweepOptions sweep;
};

// Throws std::runtime_error where the file can't be read, std::invalid_argument for options that can't be.
ReportModel make_report(input::File& file, const ModelOptions& options);

}  // namespace memopt::tools
