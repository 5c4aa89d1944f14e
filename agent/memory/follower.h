// Where each thread of the program is in the plan. A thread (lane) follows as long as each of its mallocs is the
// expected one: size and return address. Else it has left the plan, and is looked for in it at each further malloc:
// where it was, a little ahead (mallocs were left out), or in the next iteration; the farther away, the more mallocs in
// a row have to fit (rejoin). A thread that was never in the plan, or is found nowhere, follows again from the
// beginning when its last mallocs are those with which an iteration ends; more of them each time that it was gone again
// at once, since the program makes such mallocs elsewhere, too. A smaller batch than planned (an epoch's last one,
// texts that are shorter) makes the same mallocs, smaller ones by the same factor: it is followed too, unless the plan
// has swaps, whose blocks are as large as their places. What is given to a malloc that follows is its place; whether
// that place can be had is not decided here but by the ownership map.
//
// A lane's mallocs may be a shorter sequence several times over (rounds). Which of them it is in tells the position of
// another lane, its clock, or how many operations it has queued since its malloc before (gaps).
//
// Frees are not followed: which block is freed is in the call, and a block freed late only makes its place unavailable.
//
// Not thread-safe: guarded by the arena's lock. expect() and find_round() neither allocate nor call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/order/ownership.h"
#include "agent/plan/plan.h"

namespace memopt::agent {

inline constexpr std::uint64_t kNeverInPlan = ~std::uint64_t{0};

struct FollowedPlace {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Span* hint = nullptr;    // of the last taking
  std::uint32_t turn = 0;  // of the first of several: which is next
};

struct OwnWindow;

// A malloc whose blocks are swapped.
struct SwappedMalloc {
  // Of its last blocks, the one made last at `made % kRecent`: further ones have been freed, as a swap begins and ends
  // within so many iterations of its block's malloc (agent/plan/plan_swaps.cpp).
  static constexpr std::uint64_t kRecent = 8;
  struct Instance {
    std::uint64_t base = 0;
    std::uint64_t number = 0;
  };

  std::vector<OwnWindow*> windows;  // one for each place, more where one block is away while the next is there
  Instance recent[kRecent];
  std::uint64_t made = 0;

  void note(const Instance& instance) noexcept { recent[++made % kRecent] = instance; }
  Instance& last() noexcept { return recent[made % kRecent]; }
};

// Pages in which blocks lie that stay, and that are the plan's (shm::PlannedPages).
struct FollowedPages {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t place = 0;
  bool swapped = false;
  bool here_first = true;       // when an iteration begins
  std::uint64_t first_use = 0;  // else: the operation after which they come back first
};

// What is to be done behind an operation: the block made by the malloc, `back` blocks before the last one, leaves or
// comes back; or pages do.
struct SwapStep {
  std::uint32_t swapped = 0;  // into FollowedPlan::swapped, or pages
  std::uint32_t back = 0;
  bool leaves = false;
  bool of_pages = false;
  std::uint64_t order = 0;
};

// An operation of a lane behind which there are such steps: the so-manieth since the lane's malloc.
struct SwapPoint {
  std::uint32_t malloc = 0;
  std::uint32_t operations = 0;  // launches, copies and memsets; 0: the malloc itself
  bool behind_free = false;      // behind a free that comes after these
  std::uint32_t first_step = 0;  // into FollowedPlan::steps
  std::uint32_t steps = 0;
};

struct FollowedMalloc {
  std::uint64_t bytes = 0;
  std::uint64_t return_address = 0;
  FollowedPlace* places = nullptr;
  std::uint32_t count = 0;  // of places; 0: not planned
  std::uint32_t born = 0;   // rank
  SwappedMalloc* swapped = nullptr;

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
  bool first = false;        // an iteration begins with it
  bool fixed_sizes = false;  // its blocks are not smaller than planned
  // What the lanes know of the iteration that goes on: its batch is so many times as large as planned; 0: as large. Of
  // the plan.
  double* batch = nullptr;
  std::uint64_t rounds = 1;  // so many at a time
  std::uint64_t alike = 1;   // of these so many can't be told from each other, and need not be: whole iterations
  // What tells in which round this lane is, where there are several: another lane's position, or the operations that
  // lie before the first malloc of each.
  const FollowedLane* clock = nullptr;
  std::vector<std::uint64_t> gaps;
  bool is_told = false;          // by one of them
  std::uint64_t now = kUnknown;  // rank of the last malloc that followed
  std::uint64_t operations = 0;  // of the plan

  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  std::vector<FollowedMalloc> mallocs;
  std::vector<SwapPoint> points;           // by malloc and operations
  std::vector<std::uint32_t> first_point;  // of each malloc, and of one behind the last; empty without points
  std::vector<std::uint32_t> fallback;     // Knuth, Morris, Pratt: of the last `match` mallocs
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
  std::unique_ptr<double> batch = std::make_unique<double>(0);  // FollowedLane::batch
  std::vector<FollowedPlace> places;
  // By place: the rank, from the beginning of the plan's first iteration on, at which a block of the plan lies there
  // first. Of several that mallocs share, as many are in use as live blocks have been made since then.
  std::vector<std::uint64_t> first_needed;
  std::vector<CrossingMalloc> crossing;  // by bytes, the youngest first
  std::vector<SwappedMalloc> swapped;
  std::vector<FollowedPages> pages;  // by address
  std::vector<SwapStep> steps;
  std::uint64_t swaps = 0;      // an iteration
  std::uint64_t period_ns = 0;  // with swaps: of an iteration, and how much longer it is expected to be for them
  std::uint64_t added_ns = 0;
  std::uint64_t expected_ns = 0;   // both
  std::uint64_t otherwise_ns = 0;  // of an iteration on demand; 0: not known

  explicit FollowedPlan(const Plan& plan);  // may throw std::bad_alloc
  FollowedLane* find_lane(std::uint32_t lane);
  bool is_persistent(std::uint64_t block) const;
  std::uint64_t mallocs_an_iteration() const noexcept;  // of all lanes

 private:
  void add_swaps(const Plan& plan);
};

// A thread's place in a plan.
struct LanePosition {
  // Of the last mallocs off the plan so many are known.
  static constexpr std::uint32_t kKnown = 8;
  // A thread that has made so many off the plan is looked for only where iterations begin.
  static constexpr std::uint32_t kLost = 1024;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  static constexpr std::uint32_t kNotCounted = ~std::uint32_t{0};
  enum class Since : std::uint8_t { kElsewhere, kEnd, kWhole };
  struct Made {
    std::uint64_t bytes = 0;
    std::uint64_t return_address = 0;
  };

  std::uint64_t plan = 0;        // generation that the rest is about; 0: none
  FollowedLane* lane = nullptr;  // null: nothing is planned for this thread
  std::uint64_t position = 0;    // of the next malloc; off the plan: of the one that did not come
  std::uint32_t matched = 0;     // off the plan: how many of the last mallocs fit the end of an iteration
  bool following = false;
  std::uint32_t point = 0;            // of the lane's: the next one
  std::uint64_t left = kNowhere;      // position at which it left last, as it is back
  std::uint64_t rejoined = kNowhere;  // position at which it was found, in this iteration
  std::uint32_t doubts = 0;           // how often in a row it was gone again at once
  std::uint32_t off = kLost;          // mallocs since it left, not counted beyond kLost
  Since since = Since::kElsewhere;    // what it has followed: behind the end of an iteration, or a whole one by now
  std::uint32_t end_doubts = 0;       // more mallocs than `match` that are to fit such an end
  // Until the iteration ends, else 0: the batch is so many times as large as planned. Below 1 the thread follows;
  // above, it does not, and `position` is that of its next malloc.
  double scale = 0;
  // Where gaps tell the round: whether one has, and the thread's count of operations at its last malloc.
  bool is_in_round = false;
  std::uint32_t counted = kNotCounted;
  std::uint32_t seen = 0;  // mallocs off the plan, ever
  Made made[kKnown];       // the last of these, by number
};

enum class Step : std::uint8_t {
  kFollows,  // *expected is the malloc of the plan
  kLeaves,   // it was following and is not any more
  kOff,      // it was not following; from the next malloc on it may, at the beginning of an iteration
  kRejoins,  // it was not following; *expected is the malloc of the plan
};

// Is this the plan's next malloc?
inline bool is_next(const LanePosition& at, std::uint64_t bytes, std::uint64_t return_address) noexcept {
  const FollowedMalloc& next = at.lane->mallocs[at.position];
  return next.bytes == bytes && next.return_address == return_address;
}
// Puts a lane that is told (FollowedLane::is_told) at the beginning of a round into the one that it is in: it may have
// lost count, or never known it. Before each malloc; `count`: of operations that the thread has queued so far.
void find_round(LanePosition& at, std::uint32_t count) noexcept;
// Following, and it is another one.
Step deviate(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address, FollowedMalloc** expected) noexcept;
// It has just been found (kRejoins): behind the beginning of an iteration that it has not come by?
inline bool begins_behind(const LanePosition& at) noexcept { return at.left == 0 || at.rejoined < at.left; }
// Off the plan.
Step look_for(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address, FollowedMalloc** expected) noexcept;

// The lane's next malloc is the first of an iteration.
inline void begin_iteration(LanePosition& at) noexcept {
  at.position = 0;
  at.scale = 0;
  if (at.lane->first) *at.lane->batch = 0;
}

// The plan's next malloc has come.
inline Step go_on(LanePosition& at, FollowedMalloc** expected) noexcept {
  FollowedMalloc& next = at.lane->mallocs[at.position];
  if (++at.position == at.lane->mallocs.size()) {
    begin_iteration(at);
    at.rejoined = LanePosition::kNowhere;
    at.since = LanePosition::Since::kWhole;
  }
  at.lane->now = next.born;
  *expected = &next;
  return Step::kFollows;
}

// The next malloc of a thread for which at.lane is not null; behind find_round, where its lane is told.
inline Step expect(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address, FollowedMalloc** expected) {
  if (at.following) [[likely]] {
    if (is_next(at, bytes, return_address)) [[likely]]
      return go_on(at, expected);
    return deviate(at, bytes, return_address, expected);
  }
  return look_for(at, bytes, return_address, expected);
}

}  // namespace memopt::agent
