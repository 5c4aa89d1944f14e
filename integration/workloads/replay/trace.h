// An operation trace: which blocks a program allocated, read, wrote and freed, in order.
//
// Text, one operation a line, columns by blanks:
//
//   Malloc  POINTER SIZE TIME [anything]
//   Free | Read | Mutable | Layer  POINTER [SIZE] TIME
//
// Mutable is a write, Layer a marker without effect. A pointer names a block from its Malloc to its Free. A block that
// is used before it was allocated existed before the trace where the line gives its size; where it does not, the line
// is ignored and counted, as is a use after the free.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace replay {

using BlockIndex = std::uint32_t;

enum class Verb : std::uint8_t { kMalloc, kFree, kRead, kWrite, kMarker };

struct Operation {
  Verb verb = Verb::kMarker;
  BlockIndex block = 0;
  std::uint64_t time_ns = 0;
};

// From one Malloc to its Free; a pointer that is allocated again is another block.
struct Block {
  std::uint64_t bytes = 0;
  bool from_before = false;  // existed when the trace began
};

struct Trace {
  std::vector<Operation> operations;
  std::vector<Block> blocks;
  std::size_t markers = 0;
  std::size_t accesses = 0;
  std::size_t ignored = 0;  // lines that name a block which is not there
  std::string cut;          // of a recording that ends early: why

  std::uint64_t bytes(const Operation& operation) const { return blocks[operation.block].bytes; }
};

// What is wrong with which line of which file.
class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws TraceError. `name` is for messages.
Trace parse_trace(const std::string& text, const std::string& name);
Trace read_trace(const std::string& path);  // text, or a recording

// The same without reads, writes and markers.
Trace allocations_only(const Trace& trace);

// Largest sum of live blocks, those from before included.
std::uint64_t peak_load(const Trace& trace);

}  // namespace replay
