// Which chunks of blocks that live across the switch to a plan may serve where in its slab, so that the switch needs no
// memory of its own: such a block goes on lying in its chunks, and these lie in the slab as well, in slots of which the
// plan makes no use before the block is freed.
//
// Times are ranks of the plan's operations, counted from the beginning of its first iteration. They are what the plan
// expects: a block that is freed later costs those their places that were to lie there, nothing else.
//
// Not thread-safe: guarded by the arena's lock. All may throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "agent/memory/follower.h"

namespace memopt::agent {

struct LargePlace {
  std::uint64_t begin = 0;  // in the slab
  std::uint64_t end = 0;
  std::uint64_t first_use = 0;
};

struct SwitchTimes {
  std::vector<std::uint64_t> first_use;                    // by slot of the slab: of the first malloc or pages there
  std::vector<LargePlace> large;                           // places of many chunks
  std::unordered_map<std::uint64_t, std::uint64_t> freed;  // by number of the block, as far as the plan tells

  std::uint64_t first_use_of(std::size_t slot) const {
    return slot < first_use.size() ? first_use[slot] : kNeverInPlan;
  }
  std::uint64_t freed_of(std::uint64_t block) const {
    const auto known = freed.find(block);
    return known != freed.end() ? known->second : kNeverInPlan;
  }
};

// The places of at least so many bytes.
std::vector<LargePlace> large_places(const FollowedPlan& plan, std::uint64_t bytes);

// The plan's slab in slots of a chunk each. kNeverInPlan: nothing is placed there.
std::vector<std::uint64_t> first_uses(const FollowedPlan& plan, std::uint64_t chunk_bytes);

struct LiveBlock {
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
};
// When blocks will be freed that are alive at the beginning of an iteration and that the plan knows from the iterations
// before: of those of a size, the youngest ones, in the order in which they were made.
std::unordered_map<std::uint64_t, std::uint64_t> freed_times(const FollowedPlan& plan, std::vector<LiveBlock> live);

// A chunk in which blocks lie until `freed`, and a slot that is first used at `used`.
struct LentChunk {
  std::uint64_t freed = 0;
  std::size_t index = 0;  // of the caller's
};
struct SlotInTime {
  std::uint64_t used = 0;
  std::size_t slot = 0;
};
inline constexpr std::size_t kNoSlot = ~std::size_t{0};
// A slot for as many chunks as possible, such that each is free when its slot is used; each slot once. By `index`, of
// which there are `count`; kNoSlot where there is none. O(n log n).
std::vector<std::size_t> match_slots(std::vector<LentChunk> chunks, std::vector<SlotInTime> slots, std::size_t count);

}  // namespace memopt::agent
