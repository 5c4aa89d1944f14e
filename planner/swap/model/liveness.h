// What follows from a problem alone: when each block lives, and where it is accessed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/swap/model/model.h"

namespace memopt::swap {

struct Access {
  std::uint64_t position = 0;
  bool write = false;

  friend auto operator<=>(const Access&, const Access&) = default;
};

struct Lifetime {
  std::uint64_t born = kNever;  // positions; kNever for persistent blocks
  std::uint64_t freed = kNever;
  // From here on it needs its bytes: born, or the first access where allocation is lazy. 0 for persistent blocks.
  std::uint64_t start = 0;
  std::uint32_t first_access = 0;  // into Liveness::accesses
  std::uint32_t accesses = 0;
};

struct Liveness {
  std::uint64_t operations = 0;
  std::vector<Lifetime> of;  // by block
  // Those of a block side by side, ascending. Of an operation that others continue, each of its blocks is accessed by
  // all those that take time.
  std::vector<Access> accesses;
  std::uint64_t peak = 0;  // largest sum of blocks alive at an operation, nothing swapped

  std::span<const Access> accesses_of(std::uint32_t block) const {
    return std::span(accesses).subspan(of[block].first_access, of[block].accesses);
  }
};

// Instances of a block that are there when an iteration begins.
inline std::uint64_t instances_at_begin(const Problem& problem, const Liveness& liveness, std::uint32_t block) {
  return problem.blocks[block].persistent ? 1 : liveness.of[block].freed / liveness.operations;
}

// An instance that one iteration allocates is freed by a later one.
inline bool lives_on(const Problem& problem, const Liveness& liveness, std::uint32_t block) {
  return !problem.blocks[block].persistent && liveness.of[block].freed >= liveness.operations;
}

// Its instances are there for an iteration or longer each, so that two of them may be at once.
inline bool lasts_iterations(const Problem& problem, const Liveness& liveness, std::uint32_t block) {
  const Lifetime& lifetime = liveness.of[block];
  return !problem.blocks[block].persistent && lifetime.freed - lifetime.born >= liveness.operations;
}

// Throws Invalid where the problem can't be one iteration: operations out of order or naming no block, a block that is
// not persistent and lacks its allocation or its free, an access outside a lifetime, a machine without bandwidth, sizes
// whose sum is 2^62 or more. O(n log n).
Liveness find_liveness(const Problem& problem);

}  // namespace memopt::swap
