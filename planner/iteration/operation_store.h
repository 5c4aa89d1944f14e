// The operations of one program, as compact arrays: what detection and lifetimes read.
//
// Operations are mallocs, frees, launches, copies and memsets; other records only pass by. Each has a token: equal for
// operations that could be the same one of two iterations (kind, size or function, call stack; the stream is left out).
// The token of a free is made from that of its block's malloc. Memory is bounded: the oldest half is forgotten when
// `max_operations` (or as much of accesses) are stored. Positions are 32-bit indices into the arrays and change when
// something is forgotten (`forgotten()` counts that).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "shm/record.h"

namespace memopt::planner {

inline constexpr std::uint32_t kNone = 0xffffffffu;
// Larger requests are kept as operations, but never placed: sums of sizes then always fit into 64 bits.
inline constexpr std::uint64_t kMaxPlacedBytes = std::uint64_t{1} << 40;

enum class OperationKind : std::uint8_t { kMalloc, kFree, kLaunch, kCopy, kMemset };

struct Operation {
  std::uint64_t token;
  std::uint64_t sequence;
  std::uint64_t ticks;
  std::uint32_t lane_index;    // place among the operations of its lane
  std::uint32_t first_access;  // into accesses; the next operation's is the end
  std::uint32_t block;         // kMalloc, kFree; kNone for a block that was never seen
  std::uint16_t lane;          // into lanes
  OperationKind kind;
};

struct Block {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t token = 0;
  std::uint64_t return_address = 0;
  std::uint32_t birth = kNone;  // operation; kNone: forgotten, or before the first record
  std::uint32_t death = kNone;  // operation; kNone: alive
  std::uint32_t lane = kNone;   // of its birth, into lanes
  bool placeable = false;       // neither the driver's own memory nor of an impossible size
  bool known = false;           // its malloc has been seen
  bool doubtful = false;        // may have been freed in a gap; an access removes the doubt

  bool alive() const { return death == kNone; }
};

struct Access {
  std::uint32_t block : 29;
  std::uint32_t ambiguous : 1;  // this block or a neighbour of it
  std::uint32_t reads : 1;
  std::uint32_t writes : 1;
};

struct Lane {
  std::uint32_t number = 0;               // as the program's records say
  std::vector<std::uint32_t> operations;  // in order
  std::uint64_t malloc_bytes = 0;         // of the operations that are stored
};

class OperationStore {
 public:
  explicit OperationStore(std::size_t max_operations = std::size_t{2} << 20);

  void add(std::uint32_t lane, const shm::RecordView& record);

  // Forgets all operations. Blocks that live stay known; whether they still live is in doubt until they are seen again,
  // but for those that `keep` names.
  void add_gap(std::span<const std::uint64_t> keep);

  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  std::span<const Access> accesses(std::uint32_t operation) const;
  std::uint64_t last_sequence() const { return last_sequence_; }
  std::uint64_t forgotten() const { return forgotten_; }
  // The largest sum of bytes of placeable blocks that lived at once since the last gap.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

  // Every block that has not been freed, in order of its first appearance.
  std::vector<std::uint32_t> live_blocks() const;

 private:
  std::uint32_t lane_of(std::uint32_t number);
  std::uint32_t block_of(std::uint64_t number);
  void add_access(std::uint64_t number, bool reads, bool writes, bool ambiguous = false);
  void append(std::uint32_t lane, const shm::RecordView& record, OperationKind kind, std::uint64_t token,
              std::uint32_t block);
  void forget_before(std::uint32_t first);
  void bury(std::uint32_t block, std::uint32_t operation);
  void forget_name(std::unordered_map<std::uint64_t, std::uint32_t>::const_iterator name);

  struct Recent {
    std::uint64_t number = 0;  // 0: none, since no block has this number
    std::uint32_t block = 0;
  };

  std::size_t max_operations_;
  std::vector<Operation> operations_;
  std::vector<Access> accesses_;
  std::vector<Block> blocks_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::uint32_t, std::uint32_t> lane_numbers_;
  std::uint32_t last_lane_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;
  std::array<Recent, 1024> recent_{};  // of live_, by number
  std::uint64_t last_sequence_ = 0;
  std::uint64_t forgotten_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace memopt::planner
