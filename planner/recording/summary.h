// What a recording comes to. Computed in one pass; memory grows with what the program had (live blocks, distinct
// stacks, kernels), up to limits that no program reaches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/recording/clock_line.h"
#include "planner/recording/modules.h"
#include "planner/recording/python_code.h"
#include "planner/recording/reader.h"
#include "shm/record.h"

namespace memopt::planner {

// All allocations of one size at one place in the program.
struct BlockGroup {
  std::uint64_t bytes = 0;  // of each
  std::uint64_t stack = 0;  // hash; 0: not known
  std::uint64_t return_address = 0;
  std::uint64_t python = 0;  // stack in Summary::python; 0: none
  std::uint64_t count = 0;
};

struct KernelSummary {
  std::string name;  // empty: never named
  std::uint64_t launches = 0;
  std::uint64_t timed = 0;        // launches whose device time was measured
  std::uint64_t nanoseconds = 0;  // of those, together
};

// Copies of one direction.
struct CopySummary {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
inline constexpr std::size_t kCopyKinds = static_cast<std::size_t>(shm::CopyKind::kUnknown) + 1;

// The largest load while records first .. last were issued.
struct LivePoint {
  std::uint64_t first = 0;  // sequence numbers
  std::uint64_t last = 0;
  std::uint64_t peak = 0;
};

struct Summary {
  std::array<std::uint64_t, shm::kLastRecordKind + 1> counts{};  // by RecordKind
  std::uint64_t records = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::uint64_t missing = 0;     // sequence numbers that should be there and are not
  std::uint64_t gaps = 0;        // places where some are missing
  std::uint64_t disordered = 0;  // records whose number is not above that of the one before

  std::uint64_t lanes = 0;
  std::uint64_t streams = 0;
  ClockLine clock;
  std::uint64_t nanoseconds = 0;  // from first to last record

  std::uint64_t malloc_bytes = 0;   // all together
  std::uint64_t unknown_frees = 0;  // of blocks whose allocation is not in the recording
  std::uint64_t live_bytes = 0;     // at the end
  std::uint64_t live_blocks = 0;
  std::uint64_t peak_load = 0;
  std::uint64_t peak_sequence = 0;  // where it is first reached
  std::uint64_t peak_blocks = 0;    // live there
  std::vector<LivePoint> live;      // at most kLivePoints

  std::array<CopySummary, kCopyKinds> copies{};  // by CopyKind; one that does not exist counts as unknown
  std::uint64_t copied_bytes = 0;
  std::uint64_t set_bytes = 0;
  std::uint64_t accesses = 0;        // blocks named by launches
  std::uint64_t known_accesses = 0;  // of those, with a known direction
  std::uint64_t blind_launches = 0;  // parameters could not be read
  std::uint64_t parameter_bytes = 0;

  std::vector<BlockGroup> groups;                              // largest bytes first
  std::vector<KernelSummary> kernels;                          // most launches first
  std::map<std::uint64_t, std::vector<std::uint64_t>> stacks;  // hash -> return addresses, innermost first
  Modules modules;
  PythonCode python;

  bool limited = false;  // the recording has more blocks, stacks or kernels than are looked at
  std::optional<RecordingDamage> damage;
};

inline constexpr std::size_t kLivePoints = 10;

// Reads on to the end.
Summary summarise(RecordingReader& reader);

}  // namespace memopt::planner
