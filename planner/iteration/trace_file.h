// Reads the published text traces of Zhang et al. 2019: one operation a line, `Malloc|Free|Read|Mutable|Layer pointer
// [size] time [remark]`. Three dialects, told from each other line by line: size with every operation, with Mallocs
// only, and Mallocs with a remark behind the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
};

// Throws std::runtime_error that names file and line.
Trace read_trace(const std::string& path);

// The operation as the agent would record it: reads and writes are launches with one access, layers launches with none.
shm::RecordView record_of(const TraceOperation& operation, RecordBuilder& builder);

}  // namespace memopt::planner
