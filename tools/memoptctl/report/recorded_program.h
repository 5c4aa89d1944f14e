// What a recording or a text trace says about the program's memory, before anything is planned: the load over time,
// what is live at its peak, and what the operations and blocks of an iteration are called.
//
// Times are nanoseconds since the first record, sizes bytes. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/input/file.h"
#include "planner/recording/info.h"
#include "planner/sending/iteration_problem.h"
#include "tools/memoptctl/page/shown_iteration.h"
#include "tools/memoptctl/report/names.h"

namespace memopt::tools {

// The load in equal pieces of time: what is live at least and at most in each, and what PyTorch's caching allocator
// would have reserved at its end.
struct LoadPiece {
  double end_ns = 0;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::uint64_t reserved = 0;
};

struct PeakBlock {
  std::uint64_t number = 0;  // the program's own
  std::uint64_t bytes = 0;
  std::uint32_t stack = kNoStack;
  double born_ns = 0;
  double freed_ns = -1;  // below 0: not freed in the recording
};

struct RecordedProgram {
  planner::RecordingInfo info;
  bool recording = false;  // rather than a text trace
  std::uint64_t records = 0;
  std::uint64_t mallocs = 0, frees = 0, launches = 0, copies = 0, memsets = 0;
  std::uint64_t kernels = 0;  // functions
  double length_ns = 0;

  std::uint64_t peak_load = 0;
  std::uint64_t peak_record = 0;  // at which it is first reached
  double peak_ns = 0;
  std::uint64_t peak_blocks = 0;   // live there
  std::vector<PeakBlock> at_peak;  // the largest of them, at most kMostPeakBlocks; largest first
  std::uint64_t reserved = 0;      // by PyTorch's caching allocator; 0: not known, as not all was seen
  std::vector<LoadPiece> load;

  Names frames;  // of call stacks
  Stacks stacks;
  bool has_stacks = false;  // there are call stacks, and not only the addresses from which the driver was called
  Names operations;         // kernels, copies, memsets

  // Of the iteration that was asked for.
  struct Step {
    StepKind kind = StepKind::kLaunch;
    std::uint32_t name = kNoName;    // of operations; none for mallocs and frees
    std::uint32_t stack = kNoStack;  // of mallocs
  };
  std::vector<Step> steps;                      // by origin
  std::vector<std::uint32_t> persistent_stack;  // by number in IterationProblem::persistent_numbers; kNoStack: not seen

  double marked_ns = 0;  // when the record was written that was asked for

  std::uint64_t missing = 0;  // records
  std::uint64_t blind_launches = 0;
  std::string damage;  // for people: what could not be read; empty: nothing
};

inline constexpr std::size_t kLoadPieces = 1200;
inline constexpr std::size_t kMostPeakBlocks = 100'000;

// `iteration`: whose steps are asked for; may be null. `marked`: number of a record; 0: none. Throws std::runtime_error
// where the file can't be read at all.
RecordedProgram read_program(input::File& file, const planner::IterationProblem* iteration, std::uint64_t marked = 0);

}  // namespace memopt::tools
