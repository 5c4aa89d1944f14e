// Where a plan's swaps are made: the points that threads reach, and what is due there.
#include <utility>
#include <vector>

#include "agent/memory/arena_state.h"
#include "agent/memory/points.h"
#include "agent/process/kept_errno.h"

namespace memopt::agent {

constinit thread_local PointCursor point_cursor __attribute__((tls_model("initial-exec"))) = {};

namespace {

// Of the thread, where it follows a plan that swaps.
constinit thread_local LaneState* t_lane __attribute__((tls_model("initial-exec"))) = nullptr;

void stop_counting() noexcept { point_cursor.next = point_cursor.at_free = PointCursor::kNever; }

std::uint32_t last_malloc(const LanePosition& at) noexcept {
  const std::size_t count = at.lane->mallocs.size();
  return static_cast<std::uint32_t>((at.position + count - 1) % count);
}

// The cursor is set to the lane's next point before its next malloc.
void set_next(const LanePosition& at) noexcept {
  const FollowedLane& lane = *at.lane;
  if (at.point >= lane.first_point[last_malloc(at) + std::size_t{1}]) {
    stop_counting();
    return;
  }
  const SwapPoint& point = lane.points[at.point];
  point_cursor.next = point.operations + (point.behind_free ? 1 : 0);
  point_cursor.at_free = point.behind_free ? point.operations : PointCursor::kNever;
}

// Blocks whose places were another's when they were to come back.
void try_late_ones(Arena& arena, ArenaLock& lock) noexcept {
  std::vector<SwappedMalloc::Instance>& late = arena.planned_swaps.late;
  const std::uint64_t generation = arena.plan->generation;
  for (std::size_t i = 0; i < late.size();) {
    Block* const block = arena_find_swapped(arena, late[i]);
    if (block != nullptr && !arena_try_bring_in(arena, lock, *block)) {
      ++i;
      continue;
    }
    // Another thread may have been here meanwhile.
    if (arena.plan == nullptr || arena.plan->generation != generation || i >= late.size()) return;
    late[i] = late.back();
    late.pop_back();
  }
}

void carry_out(Arena& arena, ArenaLock& lock, const SwapStep& step) noexcept {
  Block* block = nullptr;
  if (step.of_pages) {
    const FollowedPages& pages = arena.plan->pages[step.swapped];
    PageRun* const run = arena_run_of(arena, pages);
    if (run == nullptr) return;
    block = &run->owner;
  } else {
    SwappedMalloc& swapped = arena.plan->swapped[step.swapped];
    if (step.back >= swapped.made || step.back >= SwappedMalloc::kRecent) return;
    block = arena_find_swapped(arena, swapped.recent[(swapped.made - step.back) % SwappedMalloc::kRecent]);
  }
  if (block == nullptr) return;
  if (step.leaves) {
    arena_send_out(arena, lock, *block);
  } else {
    arena_bring_in(arena, lock, *block);
  }
}

void reach(Arena& arena, ArenaLock& lock, LaneState& lane, bool all, bool behind_free) noexcept {
  LanePosition& at = lane.live;
  const std::uint64_t generation = at.plan;
  // Other threads may leave the plan, or take up another, while the lock is given back.
  const auto follows = [&] {
    return arena.plan != nullptr && arena.plan->generation == generation && at.plan == generation && at.following &&
           at.lane != nullptr && !at.lane->points.empty();
  };
  if (!follows()) {
    stop_counting();
    return;
  }
  if (!arena.planned_swaps.late.empty()) [[unlikely]]
    try_late_ones(arena, lock);
  while (follows() && at.point < at.lane->first_point[last_malloc(at) + std::size_t{1}]) {
    const SwapPoint point = at.lane->points[at.point];
    const std::uint32_t since = point_cursor.since;
    const bool due = all || point.operations + (point.behind_free ? 1 : 0) <= since ||
                     (behind_free && point.behind_free && point.operations <= since);
    if (!due) break;
    ++at.point;
    for (std::uint32_t i = 0; i < point.steps && follows(); ++i) {
      carry_out(arena, lock, arena.plan->steps[point.first_step + i]);
    }
  }
  if (!follows()) {
    stop_counting();
    return;
  }
  set_next(at);
}
}  // namespace

void arena_bring_in(Arena& arena, ArenaLock& lock, Block& block) noexcept {
  const SwappedMalloc::Instance instance{block.base, block.number};
  if (arena_try_bring_in(arena, lock, block)) return;
  PlannedSwaps& swaps = arena.planned_swaps;
  ++swaps.late_returns;
  // There is room for all of a plan's.
  if (swaps.late.size() < swaps.late.capacity()) swaps.late.push_back(instance);
}

void arena_begin_points(LaneState& lane, FollowedMalloc& malloc) noexcept {
  // It counts, whether it gets its place or not.
  if (malloc.swapped != nullptr) malloc.swapped->note({});
  LanePosition& at = lane.live;
  t_lane = &lane;
  point_cursor.since = 0;
  if (at.lane->points.empty()) return stop_counting();
  at.point = at.lane->first_point[last_malloc(at)];
  set_next(at);
}

void arena_stop_points() noexcept { stop_counting(); }

void arena_look_at_points(Arena& arena, ArenaLock& lock) noexcept {
  if (t_lane != nullptr) reach(arena, lock, *t_lane, false, false);
}

void arena_finish_points(Arena& arena, ArenaLock& lock) noexcept {
  if (t_lane == nullptr) return stop_counting();
  reach(arena, lock, *t_lane, true, false);
}

void arena_reach_points(bool behind_free) noexcept {
  const KeptErrno kept;
  Arena* const now = arena();
  if (now == nullptr || t_lane == nullptr) return stop_counting();
  ArenaLock lock;
  reach(*now, lock, *t_lane, false, behind_free);
}
}  // namespace memopt::agent
