// A recording as a plain text trace, one access per line: "Malloc|Free|Read|Mutable POINTER BYTES NANOSECONDS".
// docs/formats/recording.md says what becomes of each record.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "planner/recording/clock_line.h"
#include "planner/recording/reader.h"

namespace memopt::planner {

struct TraceCounts {
  std::uint64_t lines = 0;
  std::uint64_t unknown_blocks = 0;  // accesses to and frees of blocks whose allocation is not in the recording
  std::uint64_t blind_launches = 0;  // what they touch is not known: no line
};

// Reads on to the end; times by `clock` (Summary::clock, of the same recording). Check `to` afterwards.
TraceCounts write_trace(RecordingReader& reader, const ClockLine& clock, std::ostream& to);

}  // namespace memopt::planner
