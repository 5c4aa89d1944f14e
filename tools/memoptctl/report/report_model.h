// All that the page shows, as values: what the recording says (recorded_program.h), the iteration that planning finds
// in it, or that the file is, block by block, and plans of it within several limits (limit_sweep.h).
//
// Times are nanoseconds, sizes bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/input/file.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "tools/memoptctl/page/shown_iteration.h"
#include "tools/memoptctl/plan/file_plan.h"
#include "tools/memoptctl/report/limit_sweep.h"
#include "tools/memoptctl/report/recorded_program.h"

namespace memopt::tools {

// Of a file that has one iteration, and no program.
struct ReportedFile {
  std::string facts;  // a line
  std::uint64_t peak_load = 0;
  std::vector<std::string> operations;  // names
};

struct ReportModel {
  RecordedProgram program;
  FilePlanning planning;
  std::optional<ReportedFile> file;  // in the place of both
  std::optional<ShownIteration> iteration;
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

// The parts of it. Of the iteration that the model has, within limits, drawn; nothing, and why, in `no_swaps`.
void add_swap_plans(const swap::Problem& problem, const swap::Liveness& liveness, const ModelOptions& options,
                    ReportModel& model);
// Of a file that is an iteration (is_iteration), with the plan that it has, if it has one (planned_file.cpp).
ReportModel make_report_of_iteration(input::File& file, const ModelOptions& options);

}  // namespace memopt::tools
