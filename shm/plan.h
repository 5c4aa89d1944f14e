// A plan as it crosses from planner to agent: one flat piece of memory, little-endian, all offsets from its beginning.
// docs/formats/plan-wire.md. The agent verifies all of it (agent/plan/plan.h) before it believes any of it.
//
// A plan places the allocations of one iteration. Each lane (thread) repeats a sequence of mallocs; the k-th of them
// gets its place, or one of a list that it may share with other mallocs, the next that is free. Positions in time are
// ranks of operations within the iteration, over all lanes: 0 .. operations - 1.
//
// A plan may swap: what a memopt-plan-1 file says (docs/formats/plan-json.md), with ranks for its operations.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memopt::shm {

inline constexpr std::uint64_t kPlanMagic = 0x314e4c50544d4d4d;  // "MMMTPLN1"
inline constexpr std::uint32_t kPlanFormat = 6;
inline constexpr std::uint64_t kPlanAlignment = 512;  // of offsets and sizes of places
inline constexpr std::uint64_t kMaxPlanBytes = std::uint64_t{256} << 20;

// A table of fixed-size entries.
struct PlanTable {
  std::uint64_t offset;  // of its first byte, a multiple of 8
  std::uint64_t count;
};

struct PlanHeader {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t header_bytes;  // sizeof(PlanHeader)
  std::uint64_t bytes;         // of the whole plan
  std::uint64_t checksum;      // plan_checksum of everything behind the header
  std::uint64_t generation;    // grows with each plan sent to this agent
  std::uint64_t signature;     // of the iteration: equal plans for equal iterations
  std::uint64_t operations;    // of the iteration, all lanes
  std::uint64_t slab_bytes;    // a multiple of kPlanAlignment; every place lies below
  std::uint64_t peak_load;     // largest sum of live bytes in the iteration, persistent blocks included
  std::uint64_t lower_bound;   // proven: no layout of these places is smaller
  std::uint64_t persistent_bytes;
  std::uint64_t first_iteration;  // sequence of the record with which the first observed iteration began
  std::uint64_t detected_at;      // sequence of the last record that was looked at
  PlanTable lanes;                // PlannedLane
  PlanTable mallocs;              // PlannedMalloc, lane by lane
  PlanTable places;               // Place
  PlanTable persistent;           // std::uint64_t: numbers of blocks that live through all iterations
  PlanTable swaps;                // PlannedSwap, by block and time
  PlanTable replays;              // reserved: count 0
  PlanTable points;               // PlannedPoint, by rank: where the operations are that swaps name
  PlanTable pages;                // PlannedPages, by address
  std::uint64_t chunk_bytes;      // where there are swaps, whose blocks' places are multiples of it, or chunks; else 0
  std::uint64_t period_ns;        // with swaps: of an iteration without waits
  std::uint64_t added_ns;         // with swaps: how much longer an iteration is expected to be
  PlanTable chunks;               // PlannedChunk, by address
  std::uint64_t otherwise_ns;     // with swaps: by the device's clock, of an iteration on demand; 0: not known
};

struct PlannedLane {
  std::uint32_t lane;
  std::uint32_t match;         // the lane is at its beginning if its last `match` mallocs were the last of the sequence
  std::uint64_t first_malloc;  // into mallocs
  std::uint64_t mallocs;       // at least 1
};

// The part of a lane's sequence that a malloc begins is not told by how many operations lie before it.
inline constexpr std::uint64_t kNoGap = ~std::uint64_t{0};

struct PlannedMalloc {
  std::uint64_t bytes;           // as the program asks
  std::uint64_t return_address;  // of the program's call
  std::uint64_t first_place;     // into places
  std::uint32_t places;          // used in turn, perhaps by other mallocs too; 0: not planned, served dynamically
  std::uint32_t born;            // rank of the malloc
  std::uint64_t freed;           // rank of the free, plus `operations` for each iteration boundary it lies behind; the
                                 // latest one observed
  std::uint64_t gap = kNoGap;    // launches, copies and memsets of the lane since its malloc before
};

struct Place {
  std::uint64_t offset;  // in the slab
  std::uint64_t bytes;   // rounded up to kPlanAlignment
};

// Pages of device memory in which blocks lie that live through all iterations: part of the slab, at their place, from
// the plan on. What a page is goes by addresses, not by blocks: its bytes leave and come back together.
struct PlannedPages {
  std::uint64_t address;  // of the first one; a multiple of chunk_bytes
  Place place;            // likewise, both of it
};

// A chunk in which blocks that stay have a part lies in the slab as well: their bytes are left out by the places, and
// need not be held beside it. A plan holds without it too; what is served there is then beside those bytes.
struct PlannedChunk {
  std::uint64_t address;  // at which it is mapped for these blocks; a multiple of chunk_bytes
  std::uint64_t offset;   // in the slab; likewise
};

// A position is a rank, plus `operations` for each iteration boundary that lies between it and the block's malloc; of
// pages, between it and the iteration in which they leave.
inline constexpr std::uint64_t kNoPosition = ~std::uint64_t{0};
inline constexpr std::uint64_t kSwapPages = 1;   // `block` is an index into pages, not into mallocs
inline constexpr std::uint64_t kSwapCopies = 2;  // without it the host's copy of an earlier swap is current

struct PlannedSwap {
  std::uint64_t block;
  std::uint64_t flags;      // kSwapPages, kSwapCopies
  std::uint64_t out_after;  // the copy out is issued after this operation, and the bytes are given up
  std::uint64_t in_after;   // the copy in is issued after this one, and the bytes are taken
  std::uint64_t need;       // this one waits for it. kNoPosition, and in_after too: freed while away
  std::uint64_t order;      // of copies one way issued after the same operation, the smaller one goes first
};

// Where an operation is in its lane: the lane's last malloc then, and how many launches, copies and memsets there have
// been since, with the operation itself. A lane's sequence of mallocs is a circle.
struct PlannedPoint {
  std::uint64_t rank;
  std::uint32_t lane;
  std::uint32_t malloc;      // of the lane's
  std::uint32_t operations;  // 0: the malloc itself
  std::uint32_t flags;       // kPointUncounted
};
// The operation is a free, which is not counted: it lies behind those, and before the lane's next.
inline constexpr std::uint32_t kPointUncounted = 1;

// FNV-1a over 64-bit words: guards against mistakes, not against malice.
inline std::uint64_t plan_checksum(const void* data, std::size_t bytes) {
  const auto* words = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, words + i, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace memopt::shm
