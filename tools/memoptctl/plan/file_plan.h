// What the planner makes of a recording or of a published text trace: the last plan that it finds in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/input/file.h"
#include "planner/iteration/measured_times.h"
#include "planner/sending/iteration_problem.h"

namespace memopt::tools {

struct FilePlanOptions {
  bool iteration = false;  // the planned iteration, operation by operation, too
  bool buffers = false;    // and its layout problem, docs/formats/layout-csv.md
  bool idle = true;        // of the iteration: with the times when the device had nothing to do
  // In which the program's agent maps memory: the plan is what such a program gets, and of the result only `held` is it
  // besides the numbers of the iteration. 0: a plan for a file.
  std::uint64_t chunk_bytes = 0;
};

// The last plan that was found in a file.
struct FilePlan {
  std::uint64_t records = 0;
  std::uint64_t operations = 0;  // of the iteration
  std::uint64_t began_at = 0;    // sequence of the record with which the first observed iteration began
  std::uint64_t found_at = 0;    // sequence of the record at which it was found
  std::uint64_t plans = 0;       // how many were found in all
  std::uint64_t lanes = 0;
  std::uint64_t mallocs = 0;
  std::uint64_t persistent_blocks = 0;
  std::uint64_t persistent_bytes = 0;
  std::uint64_t peak_load = 0;
  std::uint64_t slab = 0;
  std::uint64_t footprint = 0;     // slab, and persistent blocks rounded up
  std::uint64_t lower_bound = 0;   // of the slab
  std::uint64_t rounds = 1;        // iterations planned as one
  std::uint64_t in_turn_slab = 0;  // where places used in turn are needed all the time
  std::string solver;
  double seconds = 0;                                  // detection and planning, all check points
  std::optional<planner::IterationProblem> iteration;  // if wanted; its times are nanoseconds
  planner::IterationTimes times;  // if it was: of the device, where known(); else those in it are the records'
  std::string buffers;
  std::uint64_t held =
      0;  // with FilePlanOptions::chunk_bytes: in whole chunks, of the slab and of what stays beside it
  std::uint64_t rounding = 0;  // what rounding up to whole places adds to the least that is possible
};

struct FilePlanning {
  std::optional<FilePlan> plan;
  std::string note;                  // of the planner
  std::uint64_t ignored = 0;         // accesses of a trace to what was never allocated
  bool recording = false;            // rather than a text trace
  std::string assumed;               // of a trace, for people: what it does not say; empty: nothing
  bool timed = true;                 // there are times in it
  std::uint64_t blind_launches = 0;  // of a recording: what they touch is not known
  std::string damage;                // of a recording, for people: what could not be read; empty: nothing
};

// Where the times of its iteration come from, for people.
std::string times_text(const FilePlanning& planning);

// Throws std::runtime_error where the file can't be read.
FilePlanning plan_file(input::File& file, const FilePlanOptions& options = {});

}  // namespace memopt::tools
