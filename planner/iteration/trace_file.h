// Reads text traces as those that Zhang et al. 2019 published: one operation a line, `[index]
// Malloc|Free|Read|Mutable|Layer pointer [size] [time] [(remark)]` (docs/formats/text-trace.md). Whether there is an
// index, the first line says; whether there are times, the first that has a size says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/input/file.h"
#include "planner/iteration/record_builder.h"

namespace memopt::planner {

enum class TraceKind : std::uint8_t { kMalloc, kFree, kRead, kWrite, kLayer };

struct TraceOperation {
  TraceKind kind;
  std::uint64_t block;    // numbers from 1; a pointer that is allocated again is a new block; 0 for kLayer
  std::uint64_t bytes;    // of the block
  std::uint64_t address;  // as in the trace
  std::uint64_t time;     // nanoseconds or milliseconds, as in the trace
};

struct Trace {
  std::vector<TraceOperation> operations;
  // The first operations are mallocs that are not in the file: of blocks that were there before, whose size is known
  // because they are named with it.
  std::size_t assumed = 0;
  std::size_t ignored = 0;  // reads, writes and frees of pointers that were never allocated
  bool indexed = false;     // there is a number in front of each line, which is not looked at
  bool timed = true;        // else the operations are kAssumedTime apart
};

inline constexpr std::uint64_t kAssumedTime = 1000;

// Throws std::runtime_error that names file and line, where there is one.
Trace read_trace(input::File& file);
Trace read_trace(const std::string& path);

// The operation as the agent would record it: reads and writes are launches with one access, layers launches with none.
shm::RecordView record_of(const TraceOperation& operation, RecordBuilder& builder);

}  // namespace memopt::planner
