// Eviction candidates: which blocks take part in the search, and when each could be away.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

// A block that the search places itself; the small rest goes between these blocks afterwards.
struct Item {
  std::uint32_t block = 0;
  std::uint32_t first_eviction = 0;  // into EvictionCandidates::evictions
  std::uint32_t evictions = 0;
  std::uint32_t writes = 0;  // of the block in all its accesses
};

// Between two accesses that follow each other, those of persistent blocks taken cyclically; between the allocation and
// the first access; behind the last one until the block is freed.
struct Eviction {
  std::uint32_t item = 0;
  std::uint64_t leaves = 0;       // the access before; positions
  std::uint64_t needed = kNever;  // the access behind; kNever: freed while away

  double short_ns = 0;       // so much longer, and there would be time for its copies
  std::uint32_t writes = 0;  // of the block, from its first access to that by which it leaves

  bool returns() const { return needed != kNever; }
};

struct EvictionCandidates {
  std::vector<Item> items;
  std::vector<Eviction> evictions;  // those of an item side by side, ascending
};

struct CandidateLimits {
  std::size_t items = 4096;
  // The blocks that are left out may need so much of the peak load together, at most, unless there are too many items.
  double rest = 0.005;
  // Blocks below both are never away: bytes, and a part of the peak load.
  std::uint64_t least_bytes = 1 << 20;
  double least_part = 1.0 / 256;
  // Evictions that are too short for their copies if nothing waits, the least short first: as many as there are others,
  // and at least `short_evictions`. 0: none.
  std::size_t short_evictions = 0;
};

// The largest blocks by size and time. A block without accesses may be away from anywhere on: a few are tried.
EvictionCandidates find_eviction_candidates(const Problem& problem, const Liveness& liveness,
                                            const CandidateLimits& limits = {});

}  // namespace memopt::swap
