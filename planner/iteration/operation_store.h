// The operations of one program, as compact arrays: what detection and lifetimes read.
//
// Operations are mallocs, frees, launches, copies and memsets; other records only pass by. Each has a token: equal for
// operations that could be the same one of two iterations (kind, size or function, call stack; the stream is left out).
// The token of a free is made from that of its block's malloc. Memory is bounded: when `max_operations` (or eight times
// as many accesses) are stored, the oldest sixty-fourth is forgotten, which moves nothing. Positions are 32-bit numbers
// from the oldest operation that is stored, and change when something is forgotten (`forgotten()` counts that); inside,
// everything has absolute places in rings.
//
// Adding a record costs constant time, but for a slice of the oldest operations that is forgotten now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "planner/iteration/block_numbers.h"
#include "planner/iteration/lane_operations.h"
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
  std::uint32_t lane_index;  // place among the operations of its lane
  std::uint32_t block;       // kMalloc, kFree; kNone for a block that was never seen
  std::uint16_t lane;        // into lanes
  OperationKind kind;
};

struct Block {
  std::uint64_t number;
  std::uint64_t bytes;
  std::uint64_t token;
  std::uint64_t return_address;
  std::uint64_t address;  // 0: not seen
  std::uint32_t birth;    // operation; kNone: forgotten, or before the first record
  std::uint32_t death;    // operation; kNone: alive
  std::uint32_t lane;     // of its birth, into lanes; kNone where that was not seen
  bool placeable;         // neither the driver's own memory nor of an impossible size
  bool known;             // its malloc has been seen
  bool stays;             // it may not leave the device
  bool doubtful;          // may have been freed in a gap; an access removes the doubt

  bool alive() const { return death == kNone; }
};

struct Access {
  static constexpr std::uint32_t kBlockMask = (1u << 29) - 1;

  std::uint32_t block : 29;
  std::uint32_t ambiguous : 1;  // this block or a neighbour of it
  std::uint32_t reads : 1;
  std::uint32_t writes : 1;
};

struct Lane {
  std::uint32_t number = 0;        // as the program's records say
  LaneOperations operations;       // in order
  std::uint64_t malloc_bytes = 0;  // of the operations that are stored
  std::uint64_t allocated = 0;     // of all operations, modulo 2^64
};

class OperationStore {
 public:
  explicit OperationStore(std::size_t max_operations = std::size_t{2} << 20);

  void add(std::uint32_t lane, const shm::RecordView& record);
  // The records of one lane from `first` to `last`, or up to the first of kind kState, which is not added. Where it
  // stopped.
  shm::RecordRun::Iterator add(std::uint32_t lane, shm::RecordRun::Iterator first, shm::RecordRun::Iterator last);

  // Forgets all operations. Blocks that live stay known; whether they still live is in doubt until they are seen again,
  // but for those that `keep` names.
  void add_gap(std::span<const std::uint64_t> keep);

  // Arrays whose elements are put together when they are asked for.
  class Operations {
   public:
    explicit Operations(const OperationStore& store) : store_(store) {}
    std::size_t size() const { return static_cast<std::size_t>(store_.end_ - store_.first_); }
    bool empty() const { return store_.end_ == store_.first_; }
    Operation operator[](std::size_t position) const { return store_.operation(position); }
    Operation back() const { return store_.operation(size() - 1); }

   private:
    const OperationStore& store_;
  };
  class Blocks {
   public:
    explicit Blocks(const OperationStore& store) : store_(store) {}
    std::size_t size() const { return store_.block_count_; }
    Block operator[](std::uint32_t block) const { return store_.block(block); }

   private:
    const OperationStore& store_;
  };
  Operations operations() const { return Operations(*this); }
  Blocks blocks() const { return Blocks(*this); }
  const std::vector<Lane>& lanes() const { return lanes_; }
  std::span<const Access> accesses(std::uint32_t operation) const {
    const Stored& stored = stored_[(first_ + operation) & mask_];
    return {accesses_.get() + (stored.first_access & access_mask_), stored.accesses};
  }
  std::uint64_t last_sequence() const { return last_sequence_; }
  std::uint64_t forgotten() const { return forgotten_; }
  // The largest sum of bytes of placeable blocks that lived at once since the last gap.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

  // A block whose address is stored where uses are not seen (kEscape).
  struct Escape {
    std::uint64_t number;
    std::uint32_t block;  // if that is still its number; kNone: nothing of it was stored
  };
  // Of late; and how many there were before these.
  std::span<const Escape> escapes() const { return escapes_; }
  std::uint64_t escapes_forgotten() const { return escapes_forgotten_; }

  // Every block that has not been freed, in order of their numbers.
  std::vector<std::uint32_t> live_blocks() const;

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static constexpr std::size_t kSlices = 128;  // more than are ever in use at once
  static constexpr std::uint32_t kBlockChunkBits = 12;
  static constexpr std::uint32_t kBlockChunkMask = (1u << kBlockChunkBits) - 1;

  struct Stored {
    std::uint64_t sequence;
    std::uint64_t ticks;
    std::uint32_t lane_index;    // the lowest bits of the absolute one
    std::uint32_t first_access;  // likewise
    std::uint32_t block;
    std::uint16_t accesses;
    std::uint16_t lane : 13;
    std::uint16_t kind : 3;
  };
  struct StoredBlock {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    std::uint64_t token = 0;
    std::uint64_t return_address = 0;
    std::uint64_t birth = kNever;  // absolute
    std::uint64_t death = kNever;
    std::uint64_t address_or_last_use = 0;  // the latter of a block without a malloc that was seen
    std::uint32_t next = kNone;             // in a list of blocks to be looked at, or of free places
    std::uint16_t lane = 0xffff;
    bool placeable : 1 = false;
    bool known : 1 = false;
    bool stays : 1 = false;
    bool doubtful : 1 = false;
    bool listed : 1 = false;
  };
  static_assert(sizeof(Stored) == 32 && sizeof(StoredBlock) == 64);
  // What was there when the first operation of a slice came.
  struct Mark {
    struct LaneMark {
      std::uint64_t end;
      std::uint64_t allocated;
    };
    std::vector<LaneMark> lanes;
    std::uint64_t access_end = 0;
  };

  Operation operation(std::size_t position) const {
    const Stored& stored = stored_[(first_ + position) & mask_];
    const LaneOperations& lane = lanes_[stored.lane].operations;
    const std::uint32_t index = stored.lane_index - lane.first_index();
    return {lane.token(index),
            stored.sequence,
            stored.ticks,
            index,
            stored.block,
            stored.lane,
            static_cast<OperationKind>(stored.kind)};
  }
  Block block(std::uint32_t index) const {
    const StoredBlock& b = blocks_[index >> kBlockChunkBits][index & kBlockChunkMask];
    return {b.number,
            b.bytes,
            b.token,
            b.return_address,
            b.known ? b.address_or_last_use : 0,
            b.birth == kNever || b.birth < first_ ? kNone : static_cast<std::uint32_t>(b.birth - first_),
            b.death == kNever ? kNone : static_cast<std::uint32_t>(b.death - first_),
            b.lane == 0xffff ? kNone : b.lane,
            b.placeable,
            b.known,
            b.stays,
            b.doubtful};
  }
  StoredBlock& stored_block(std::uint32_t index) { return blocks_[index >> kBlockChunkBits][index & kBlockChunkMask]; }

  class Appender;
  std::uint32_t lane_of(std::uint32_t number);
  std::uint32_t new_block(std::uint64_t number);
  // Its address is stored where uses are not seen.
  void keep_here(std::uint64_t number);
  std::uint32_t find_block(std::uint64_t number);
  void list(std::uint32_t index, std::uint64_t until);
  void add_access(std::uint64_t number, bool reads, bool writes, bool ambiguous = false);
  void make_room(std::size_t accesses);
  void set_stops();
  void mark();
  void forget_slice();
  void forget_before(std::uint64_t first);
  void bury(std::uint32_t block);

  std::vector<Escape> escapes_;
  // Blocks that may be looked at for one that is no more: some for each record, so that all of it takes linear time.
  std::uint64_t looks_ = 0;
  std::uint64_t looks_until_ = 0;  // last_sequence_, up to which there were
  std::uint64_t escapes_forgotten_ = 0;
  std::size_t max_operations_;
  std::uint64_t slice_;  // operations
  std::unique_ptr<Stored[]> stored_;
  std::uint64_t mask_;
  std::uint64_t first_ = 0;  // absolute positions of what is stored
  std::uint64_t end_ = 0;
  std::uint64_t stop_ = 0;  // of end_
  std::unique_ptr<Access[]> accesses_;
  std::uint64_t access_mask_;
  std::uint64_t access_first_ = 0;
  std::uint64_t access_end_ = 0;
  std::uint64_t access_stop_ = 0;    // of access_end_
  std::array<Mark, kSlices> marks_;  // by number of slice
  // Blocks that are dead, or were only named, by the slice behind which they are of no use any more.
  std::array<std::uint32_t, kSlices> listed_;
  std::vector<std::unique_ptr<StoredBlock[]>> blocks_;
  std::uint32_t block_count_ = 0;
  std::uint32_t free_block_ = kNone;
  std::vector<Lane> lanes_;
  LaneOperations::Pool lane_chunks_;
  std::unordered_map<std::uint32_t, std::uint32_t> lane_numbers_;
  std::array<std::uint32_t, 64> recent_lanes_{};  // of lane_numbers_
  BlockNumbers live_;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t forgotten_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace memopt::planner
