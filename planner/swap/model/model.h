// One steady iteration of a program, the machine it runs on, and what a planner decided: the vocabulary of this room.
// Plain values, as in a memopt-plan-1 file; docs/formats/plan-json.md has the meaning of each word.
//
// Times are nanoseconds, sizes and offsets bytes. A position is the number of an operation; operation i, a iterations
// after the one in which a block's instance was born, is at position i + a * operations. Blocks are named by their
// index in Problem::blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace memopt::swap {

inline constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};
inline constexpr std::uint64_t kNever = ~std::uint64_t{0};
// So much added time, of the period, counts as none.
inline constexpr double kUnnoticed = 0.001;

enum class Kind : std::uint8_t { kMalloc, kFree, kRead, kWrite, kNothing };

struct Operation {
  Kind kind = Kind::kNothing;
  std::uint32_t block = kNoBlock;  // kNoBlock for kNothing only
  double time = 0;                 // its start in an iteration without stalls
  std::uint32_t age = 0;           // iterations between the birth of the instance it touches and this one; below 8
  std::uint32_t stream = 0;
  // Of a launch that names several blocks, which is several operations: the same one as the operation before. All of
  // its blocks are on the device until it is over. A file can't say that: there all operations are on their own.
  bool continues = false;

  friend bool operator==(const Operation&, const Operation&) = default;
};

inline bool is_access(const Operation& operation) {
  return operation.kind == Kind::kRead || operation.kind == Kind::kWrite;
}

struct Block {
  std::uint64_t id = 0;  // its name outside
  std::uint64_t bytes = 0;
  bool persistent = false;  // lives through all iterations: never allocated nor freed in one
  bool pinned = false;      // must stay resident
  // Has a window of its own, swapped or not, as what lies in it has its addresses already. A file can't say that.
  bool whole_chunks = false;
  std::string name = {};

  friend bool operator==(const Block&, const Block&) = default;
};

// A copy of s bytes takes latency + s / rate; out and in are two engines, each doing one copy at a time. The host maps
// addresses to other bytes, one chunk after the other.
struct Machine {
  double out_bytes_per_ns = 0;
  double in_bytes_per_ns = 0;
  double out_latency_ns = 0;
  double in_latency_ns = 0;
  std::optional<double> remap_ns = {};  // of a chunk; none: every block returns to where it was

  double out_ns(std::uint64_t bytes) const { return out_latency_ns + static_cast<double>(bytes) / out_bytes_per_ns; }
  double in_ns(std::uint64_t bytes) const { return in_latency_ns + static_cast<double>(bytes) / in_bytes_per_ns; }

  friend bool operator==(const Machine&, const Machine&) = default;
};

struct Problem {
  std::string name = {};
  std::vector<Block> blocks;
  std::vector<Operation> operations;  // at least one, times not falling, the first at 0
  double period = 0;                  // length of the iteration without stalls
  Machine machine;
  std::optional<std::uint64_t> limit;  // of the footprint; needed where `layout` is false
  std::uint64_t chunk = 2097152;       // offsets of `own` windows are multiples of it
  std::uint64_t align = 1;             // offsets of the linear window are multiples of it
  bool layout = true;                  // false: bytes are interchangeable, only their sum counts
  bool lazy_malloc = false;            // a block takes its bytes at its first access, not when it is allocated
  // Clean drops: a block whose host copy is current may be given up without a copy. Only for a runtime that can prove
  // that nothing wrote it: for others a list of accesses is a guess. A file can't say that.
  bool clean_drops = false;

  friend bool operator==(const Problem&, const Problem&) = default;
};

// Behind the last operation that belongs to the one at `begin`.
inline std::size_t end_of_launch(const Problem& problem, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < problem.operations.size() && problem.operations[end].continues) ++end;
  return end;
}

// The block is copied out after operation `out_after`, copied in after operation `in_after`, and operation `need` waits
// for that. Positions; for persistent blocks out_after is below the number of operations.
struct Swap {
  std::uint32_t block = 0;
  std::uint64_t out_after = 0;
  std::uint64_t in_after = kNever;  // both kNever: freed while away
  std::uint64_t need = kNever;
  bool copy = true;  // false: the host's copy of an earlier swap is current, its bytes are given up at once
  // Where it is from its return on until it goes out again or is freed, in turn as Place::offsets are, and as many.
  // None: where its Place says.
  std::vector<std::uint64_t> returns_to = {};

  bool returns() const { return need != kNever; }

  friend bool operator==(const Swap&, const Swap&) = default;
};

// Where a block lies. Several offsets are used in turn: the instance born in iteration k uses entry k mod their number.
struct Place {
  std::vector<std::uint64_t> offsets;
  bool own = false;  // has a window of its own, chunk-aligned in the slab

  friend bool operator==(const Place&, const Place&) = default;
};

struct Decisions {
  std::vector<Swap> swaps;    // the order decides which of two copies issued after the same operation goes first
  std::vector<Place> places;  // by block; empty where the problem has no layout, or nothing is placed yet

  friend bool operator==(const Decisions&, const Decisions&) = default;
};

// Where a block is since the swap that brought it in (its index), or its birth (below 0). In turn.
inline const std::vector<std::uint64_t>& offsets_since(const Decisions& decisions, std::uint32_t block,
                                                       std::int32_t in_swap) {
  if (in_swap >= 0) {
    const std::vector<std::uint64_t>& returns = decisions.swaps[static_cast<std::size_t>(in_swap)].returns_to;
    if (!returns.empty()) return returns;
  }
  return decisions.places[block].offsets;
}

// Of offsets of a block of the problem.
inline std::uint64_t alignment_of(const Problem& problem, std::uint32_t block, bool swapped) {
  return swapped || problem.blocks[block].whole_chunks ? problem.chunk : problem.align;
}

// Chunks that a block of so many bytes takes, the last one that it only begins included.
inline std::uint64_t chunks_of(const Problem& problem, std::uint64_t bytes) {
  return (bytes + problem.chunk - 1) / problem.chunk;
}

// A problem or a plan that can't hold; says which element, and what was expected.
struct Invalid : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace memopt::swap
