// Where a plan's swaps are made: the points that threads reach, and what is due there.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/arena_state.h"
#include "agent/memory/points.h"
#include "agent/process/kept_errno.h"
#include "agent/process/log.h"

namespace memopt::agent {

constinit thread_local PointCursor point_cursor __attribute__((tls_model("initial-exec"))) = {};

namespace {

// Of the thread, where it follows a plan that swaps.
constinit thread_local LaneState* t_lane __attribute__((tls_model("initial-exec"))) = nullptr;

bool is_near(const LanePosition& at) noexcept { return at.following || at.off <= kPointsCounted; }

void stop_counting() noexcept { point_cursor.next = point_cursor.at_free = PointCursor::kNever; }

std::uint32_t last_malloc(const LanePosition& at) noexcept {
  const std::size_t count = at.lane->mallocs.size();
  return static_cast<std::uint32_t>((at.position + count - 1) % count);
}

// The cursor is set to the lane's next point before its next malloc. What is late is tried again at each free: of
// several in a row, the plan means the last one that it needs.
void set_next(const Arena& arena, const LanePosition& at) noexcept {
  const FollowedLane& lane = *at.lane;
  const bool late = !arena.planned_swaps.late.empty();
  if (at.point >= lane.first_point[last_malloc(at) + std::size_t{1}]) {
    stop_counting();
  } else {
    const SwapPoint& point = lane.points[at.point];
    point_cursor.next = point.operations + (point.behind_free ? 1 : 0);
    point_cursor.at_free = point.behind_free ? point.operations : PointCursor::kNever;
  }
  if (late) {
    point_cursor.next = std::min(point_cursor.next, point_cursor.since + 1);
    point_cursor.at_free = 0;
  }
}

// Blocks whose places were another's when they were to come back. They count as late where an operation finds them so.
void try_late_ones(Arena& arena, ArenaLock& lock, bool behind_free) noexcept {
  std::vector<LateReturn>& late = arena.planned_swaps.late;
  const std::uint64_t generation = arena.plan->generation;
  for (std::size_t i = 0; i < late.size();) {
    Block* const block = arena_find_swapped(arena, late[i].block);
    if (block != nullptr && !arena_try_bring_in(arena, lock, *block)) {
      if (arena.plan == nullptr || arena.plan->generation != generation || i >= late.size()) return;
      if (!behind_free && !std::exchange(late[i].counted, true)) {
        ++arena.planned_swaps.late_returns;
        log(LogLevel::kDebug, "block {} is to come back, in iteration {}, and its place is another's",
            late[i].block.number, arena.iterations);
      }
      ++i;
      continue;
    }
    // Another thread may have been here meanwhile.
    if (arena.plan == nullptr || arena.plan->generation != generation || i >= late.size()) return;
    // In the order of the plan: the copies back are made one after the other.
    late.erase(late.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Those that have come back too soon.
void send_early_ones(Arena& arena, ArenaLock& lock) noexcept {
  std::vector<SwappedMalloc::Instance>& early = arena.planned_swaps.early;
  const std::uint64_t generation = arena.plan->generation;
  while (arena.plan != nullptr && arena.plan->generation == generation && !early.empty()) {
    const SwappedMalloc::Instance instance = early.back();
    early.pop_back();
    Block* const block = arena_find_swapped(arena, instance);
    if (block != nullptr) arena_send_out(arena, lock, *block);
  }
}

// What the step is about; null: it is not there.
Block* block_of(Arena& arena, const SwapStep& step) noexcept {
  if (step.of_pages) {
    PageRun* const run = arena_run_of(arena, arena.plan->pages[step.swapped]);
    return run != nullptr ? &run->owner : nullptr;
  }
  SwappedMalloc& swapped = arena.plan->swapped[step.swapped];
  if (step.back >= swapped.made || step.back >= SwappedMalloc::kRecent) return nullptr;
  return arena_find_swapped(arena, swapped.recent[(swapped.made - step.back) % SwappedMalloc::kRecent]);
}

void move(Arena& arena, ArenaLock& lock, Block* block, bool leaves) noexcept {
  if (block == nullptr) return;
  if (leaves) {
    if (OwnWindow* const window = own_window(*block)) window->early = 0;
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
    return arena.plan != nullptr && arena.plan->generation == generation && at.plan == generation && is_near(at) &&
           at.lane != nullptr && !at.lane->points.empty();
  };
  if (!follows()) {
    stop_counting();
    return;
  }
  if (!arena.planned_swaps.early.empty()) [[unlikely]]
    send_early_ones(arena, lock);
  if (follows() && !arena.planned_swaps.late.empty()) [[unlikely]]
    try_late_ones(arena, lock, behind_free);
  while (follows() && at.point < at.lane->first_point[last_malloc(at) + std::size_t{1}]) {
    const SwapPoint point = at.lane->points[at.point];
    const std::uint32_t since = point_cursor.since;
    const bool due = all || point.operations + (point.behind_free ? 1 : 0) <= since ||
                     (behind_free && point.behind_free && point.operations <= since);
    if (!due) break;
    ++at.point;
    for (std::uint32_t i = 0; i < point.steps && follows(); ++i) {
      const SwapStep& step = arena.plan->steps[point.first_step + i];
      move(arena, lock, block_of(arena, step), step.leaves);
    }
  }
  if (!follows()) {
    stop_counting();
    return;
  }
  set_next(arena, at);
}
}  // namespace

void arena_bring_in(Arena& arena, ArenaLock& lock, Block& block) noexcept {
  const SwappedMalloc::Instance instance{block.base, block.number};
  if (arena_try_bring_in(arena, lock, block)) return;
  PlannedSwaps& swaps = arena.planned_swaps;
  // There is room for all of a plan's.
  if (swaps.late.size() < swaps.late.capacity()) swaps.late.push_back({instance, false});
}

void arena_begin_points(Arena& arena, LaneState& lane, FollowedMalloc& malloc) noexcept {
  // It counts, whether it gets its place or not.
  if (malloc.swapped != nullptr) malloc.swapped->note({});
  LanePosition& at = lane.live;
  t_lane = &lane;
  point_cursor.since = 0;
  lane.live.counted = lane.next.counted = 0;
  if (at.lane->points.empty()) return stop_counting();
  at.point = at.lane->first_point[last_malloc(at)];
  set_next(arena, at);
}

void arena_stop_points() noexcept { stop_counting(); }

// A block that left and came back in what was skipped does neither; so each is done once, as its last step says. What
// leaves goes first: it may lie where others come back.
void arena_catch_up(Arena& arena, ArenaLock& lock, LaneState& lane, std::uint64_t skipped) noexcept {
  LanePosition& at = lane.live;
  if (arena.plan->steps.empty() || at.left == LanePosition::kNowhere) return;
  struct Last {
    SwappedMalloc::Instance instance;
    bool leaves;
  };
  std::vector<Last> last;
  const std::vector<FollowedMalloc>& mallocs = at.lane->mallocs;
  const std::vector<SwapPoint>& points = at.lane->points;
  const std::vector<std::uint32_t>& first = at.lane->first_point;
  const auto add = [&](std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t number = begin; number < end; ++number) {
      for (std::uint32_t i = 0; i < points[number].steps; ++i) {
        const SwapStep& step = arena.plan->steps[points[number].first_step + i];
        const Block* const block = block_of(arena, step);
        if (block == nullptr) continue;
        const auto same = [block](const Last& one) { return one.instance.number == block->number; };
        const auto known = std::find_if(last.begin(), last.end(), same);
        if (known != last.end()) last.erase(known);
        last.push_back({{block->base, block->number}, step.leaves});
      }
    }
  };
  try {
    if (!points.empty()) add(at.point, first[(at.left + mallocs.size() - 1) % mallocs.size() + 1]);
    for (std::uint64_t i = 0; i < skipped; ++i) {
      const std::uint64_t malloc = (at.left + i) % mallocs.size();
      if (mallocs[malloc].swapped != nullptr) mallocs[malloc].swapped->note({});
      if (!points.empty()) add(first[malloc], first[malloc + 1]);
    }
  } catch (const std::bad_alloc&) {
    // Those come back when they are touched.
  }
  at.point = points.empty() ? 0 : first[(at.left + skipped + mallocs.size() - 1) % mallocs.size() + 1];
  const std::uint64_t generation = arena.plan->generation;
  const std::uint64_t releases = arena.releases;
  for (const bool leaves : {true, false}) {
    for (const Last& one : last) {
      if (one.leaves != leaves) continue;
      if (arena.releases != releases || arena.plan == nullptr || arena.plan->generation != generation) return;
      Block* const block = arena_find_swapped(arena, one.instance);
      if (block != nullptr && (block->away != 0) != leaves) move(arena, lock, block, leaves);
    }
  }
}

void arena_look_at_points(Arena& arena, ArenaLock& lock) noexcept {
  if (t_lane != nullptr) reach(arena, lock, *t_lane, false, false);
}

void arena_finish_points(Arena& arena, ArenaLock& lock, std::uint64_t bytes, std::uint64_t return_address) noexcept {
  if (t_lane == nullptr) return stop_counting();
  const LanePosition& at = t_lane->live;
  // Since the thread was here another one may have taken up another plan, and that one be gone with its lanes.
  const bool lives = arena.plan != nullptr && arena.plan->generation == at.plan && at.lane != nullptr;
  // Behind one that is not the plan's next, operations of the one before may still come.
  const bool finished = lives && is_next(at, bytes, return_address);
  reach(arena, lock, *t_lane, finished, false);
}

void arena_reach_points(bool behind_free) noexcept {
  const KeptErrno kept;
  Arena* const now = arena();
  if (now == nullptr || t_lane == nullptr) return stop_counting();
  ArenaLock lock;
  reach(*now, lock, *t_lane, false, behind_free);
}
}  // namespace memopt::agent
