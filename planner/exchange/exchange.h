// Recordings to and from the files of other tools; docs/formats/exchange.md says what each has and what is lost.
//
// Readers throw input::InputError or std::runtime_error that name the file and where in it. Writers read a recording to
// its end, or to where it is damaged, and throw planner::RecordingError where it is none; check the stream afterwards.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "planner/input/file.h"
#include "planner/recording/writer.h"

namespace memopt::exchange {

struct Counts {
  std::uint64_t operations = 0;  // written
  std::uint64_t left_out = 0;    // that the other format has no room for, or that name blocks never allocated
  std::string note;              // what a person should know of the result; empty: nothing
  std::string damage;            // of the recording; empty: it was read to its end
};

// Every record, a row each.
Counts write_operations_csv(input::File& recording, std::ostream& to);
Counts read_operations_csv(input::File& file, planner::RecordingWriter& to);
bool is_operations_csv(std::string_view head);

// Buffers with lifetimes, as MiniMalloc has them. Read, they are `iterations` runs of a program that allocates and
// frees them in their order.
Counts write_buffers(input::File& recording, std::ostream& to);
Counts read_buffers(input::File& file, planner::RecordingWriter& to, std::uint64_t iterations);
bool is_buffers(std::string_view head);

// What torch.cuda.memory._dump_snapshot writes.
Counts write_snapshot(input::File& recording, std::ostream& to);
Counts read_snapshot(input::File& file, planner::RecordingWriter& to);

// Trace events for Perfetto.
Counts write_trace_events(input::File& recording, std::ostream& to);

}  // namespace memopt::exchange
