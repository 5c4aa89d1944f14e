// A plan as it crosses from planner to agent: one flat piece of memory, little-endian, all offsets from its beginning.
// docs/formats/plan-wire.md. The agent verifies all of it (agent/plan.h) before it believes any of it.
//
// A plan places the allocations of one iteration. Each lane (thread) repeats a sequence of mallocs; the k-th of them
// gets its place, or, where the block outlives an iteration, the places of its list in turn. Positions in time are
// ranks of operations within the iteration, over all lanes: 0 .. operations - 1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memopt::shm {

inline constexpr std::uint64_t kPlanMagic = 0x314e4c50544d4d4d;  // "MMMTPLN1"
inline constexpr std::uint32_t kPlanFormat = 1;
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
  PlanTable swaps;                // reserved: count 0
  PlanTable replays;              // reserved: count 0
};

struct PlannedLane {
  std::uint32_t lane;
  std::uint32_t match;         // the lane is at its beginning if its last `match` mallocs were the last of the sequence
  std::uint64_t first_malloc;  // into mallocs
  std::uint64_t mallocs;       // at least 1
};

struct PlannedMalloc {
  std::uint64_t bytes;           // as the program asks
  std::uint64_t return_address;  // of the program's call
  std::uint64_t first_place;     // into places
  std::uint32_t places;          // used in turn; 0: not planned, served dynamically
  std::uint32_t born;            // rank of the malloc
  std::uint64_t freed;           // rank of the free, plus `operations` for each iteration boundary it lies behind; the
                                 // latest one observed
};

struct Place {
  std::uint64_t offset;  // in the slab
  std::uint64_t bytes;   // rounded up to kPlanAlignment
};

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
