// Where each thread of the program is in the plan. A thread (lane) follows as long as each of its mallocs is the
// expected one: size and return address. Else it has left the plan, and is watched until its last mallocs are those
// with which an iteration ends; then it follows again from the beginning. What is given to a malloc that follows is its
// place; whether that place can be had is not decided here but by the ownership map.
//
// Frees are not followed: which block is freed is in the call, and a block freed late only makes its place unavailable.
//
// Not thread-safe: guarded by the arena's lock. expect() neither allocates nor calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/order/ownership.h"
#include "agent/plan/plan.h"

namespace memopt::agent {

struct FollowedPlace {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Span* hint = nullptr;    // of the last taking
  std::uint32_t turn = 0;  // of the first of several: which is next
};

struct FollowedMalloc {
  std::uint64_t bytes = 0;
  std::uint64_t return_address = 0;
  FollowedPlace* places = nullptr;
  std::uint32_t count = 0;  // of places; 0: not planned
  std::uint32_t born = 0;   // rank

  // Other mallocs may take turns with it.
  FollowedPlace* next_place() {
    std::uint32_t& turn = places->turn;
    FollowedPlace* const place = places + turn;
    if (++turn == count) turn = 0;
    return place;
  }
};

struct FollowedLane {
  std::uint32_t lane = 0;
  std::uint32_t match = 0;
  bool main = false;         // its beginnings are counted as iterations
  std::uint64_t rounds = 1;  // so many at a time
  // Whose position tells in which round this lane is, where there are several; null: nothing does.
  const FollowedLane* clock = nullptr;
  std::uint64_t now = kUnknown;  // rank of the last malloc that followed
  std::uint64_t operations = 0;  // of the plan

  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  std::vector<FollowedMalloc> mallocs;
  std::vector<std::uint32_t> fallback;  // Knuth, Morris, Pratt: of the last `match` mallocs
};

// A block that lives across the end of an iteration, as it is when the next one begins.
struct CrossingMalloc {
  std::uint64_t bytes = 0;
  std::uint64_t age = 0;    // operations ago that it was made
  std::uint64_t freed = 0;  // rank in the iteration that begins, or a later one
};

struct FollowedPlan {
  std::uint64_t generation = 0;
  std::uint64_t operations = 0;
  std::uint64_t slab_bytes = 0;
  std::uint64_t peak_load = 0;
  std::uint64_t persistent_bytes = 0;
  std::vector<std::uint64_t> persistent;  // block numbers, ascending
  std::uint64_t chunk_bytes = 0;
  std::vector<shm::PlannedChunk> chunks;  // of so many bytes
  std::vector<FollowedLane> lanes;
  std::vector<FollowedPlace> places;
  std::vector<CrossingMalloc> crossing;  // by bytes, the youngest first

  explicit FollowedPlan(const Plan& plan);  // may throw std::bad_alloc
  FollowedLane* find_lane(std::uint32_t lane);
  bool is_persistent(std::uint64_t block) const;
};

// A thread's place in a plan.
struct LanePosition {
  std::uint64_t plan = 0;        // generation that the rest is about; 0: none
  FollowedLane* lane = nullptr;  // null: nothing is planned for this thread
  std::uint64_t position = 0;    // of the next malloc
  std::uint32_t matched = 0;     // off the plan: how many of the last mallocs fit the end of an iteration
  bool following = false;
};

enum class Step : std::uint8_t {
  kFollows,  // *expected is the malloc of the plan
  kLeaves,   // it was following and is not any more
  kOff,      // it was not following; from the next malloc on it may
};

// Puts a lane at the beginning of a round into the one that comes next by the clock: it may have lost count, or never
// known it.
void keep_in_step(LanePosition& at) noexcept;
Step deviate(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address) noexcept;
void watch(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address) noexcept;

// The next malloc of a thread for which at.lane is not null.
inline Step expect(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address, FollowedMalloc** expected) {
  if (at.following) [[likely]] {
    if (at.lane->clock != nullptr) [[unlikely]]
      keep_in_step(at);
    FollowedMalloc& next = at.lane->mallocs[at.position];
    if (next.bytes == bytes && next.return_address == return_address) [[likely]] {
      if (++at.position == at.lane->mallocs.size()) at.position = 0;
      at.lane->now = next.born;
      *expected = &next;
      return Step::kFollows;
    }
    return deviate(at, bytes, return_address);
  }
  watch(at, bytes, return_address);
  return Step::kOff;
}

}  // namespace memopt::agent
