// The switch to a plan: room for its slab is made, and it goes live.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/link/link.h"
#include "agent/memory/arena_state.h"
#include "agent/process/log.h"

namespace memopt::agent {
namespace {

// Boundaries at which places in chunks of blocks that cross the switch are still waited for: whole iterations, and the
// first.
constexpr std::uint32_t kLoans = 3;
// Chunks of a place that is not to wait for a small block of before: one more is held for it instead.
constexpr std::uint64_t kLargePlace = 4;
// At which blocks leave for the slab: others may take what they leave.
constexpr int kTriesToMakeRoom = 8;

// By the program's mallocs: those of one iteration are known now, those that stayed are no iteration's.
std::uint64_t iterations_so_far(const Arena& arena) {
  const std::uint64_t each = arena.plan->mallocs_an_iteration();
  const std::uint64_t stayed = arena.plan->persistent.size();
  return each == 0 || arena.mallocs < stayed ? 0 : (arena.mallocs - stayed) / each;
}

// A thread that is not would have all blocks of its iteration served off the plan, beside its slab.
bool lanes_are_in_step(const Arena& arena) noexcept {
  return std::all_of(arena.next->lanes.begin(), arena.next->lanes.end(), [&](const FollowedLane& lane) {
    if (lane.lane >= arena.lanes.size()) return true;
    const LanePosition& at = arena.lanes[lane.lane].next;
    return at.plan == arena.next->generation && at.following && (at.lane->gaps.empty() || at.is_in_round);
  });
}

// Without host memory: nothing is known.
SwitchTimes times_of_switch(Arena& arena, const FollowedPlan& plan) noexcept {
  SwitchTimes times;
  if (arena.service != Arena::Service::kChunks) return times;
  try {
    std::vector<LiveBlock> live;
    arena.blocks.for_each([&](const Block& block) {
      if (!plan.is_persistent(block.number)) live.push_back({block.bytes, block.number});
    });
    times.freed = freed_times(plan, std::move(live));
    times.first_use = first_uses(plan, arena.chunks.chunk_bytes());
    times.large = large_places(plan, kLargePlace * arena.chunks.chunk_bytes());
  } catch (const std::bad_alloc&) {
  }
  return times;
}

// Blocks that live now, and of which the plan does not say when they are freed: above a part of its slab, the iteration
// before was another one (a batch of another size), and for its blocks, which the slab's chunks are full of, new ones
// would be made.
bool much_is_unknown(Arena& arena, const FollowedPlan& plan, const SwitchTimes& times) noexcept {
  constexpr std::uint64_t kPart = 8;
  std::uint64_t unknown = 0;
  arena.blocks.for_each([&](const Block& block) {
    const bool ours = block.window != nullptr && block.window->kind == Window::Kind::kRegion;
    if (ours && !plan.is_persistent(block.number) && times.freed_of(block.number) == kNeverInPlan)
      unknown += block.bytes;
  });
  return unknown > plan.slab_bytes / kPart;
}

bool is_armed(const Arena& arena, std::uint64_t releases, std::uint64_t generation) noexcept {
  return arena.releases == releases && arena.phase == Arena::Phase::kArmed && arena.next != nullptr &&
         arena.next->generation == generation;
}

// Pages that are not where the plan has them leave. False: the plan is not armed any more.
bool make_pages_leave(Arena& arena, ArenaLock& lock) noexcept {
  const std::uint64_t generation = arena.next->generation;
  const std::uint64_t releases = arena.releases;
  if (!arena.runs.empty()) arena_leave_runs(arena, lock, arena.next.get());
  if (!is_armed(arena, releases, generation)) return false;
  if (arena.next->pages.empty()) return true;
  // Blocks that cross the switch, too: in the slab's chunks they would be in the way of what has just left for it, and
  // a slab that is all there is has no other place for that.
  arena.slab.give_up_unfinished();
  arena_send_everything(arena, lock);
  return is_armed(arena, releases, generation);
}

// At a limit all chunks are blocks', or will be: so many leave as the slab lacks. They come back when there is room, as
// the plan needs no more than the limit. False: the plan is not armed any more.
bool make_room_for_slab(Arena& arena, ArenaLock& lock) noexcept {
  const std::uint64_t generation = arena.next->generation;
  const std::uint64_t releases = arena.releases;
  for (int tries = 0; tries < kTriesToMakeRoom; ++tries) {
    // What was mapped ahead has been given up for what was served meanwhile.
    arena.slab.build(~std::size_t{0});
    if (arena.slab.missing_chunks() == 0) return true;
    // Chunks that are mapped ahead are free ones still, and would be found again instead of others.
    arena.slab.give_up_unfinished();
    const bool made = arena_free_chunks(arena, lock, arena.slab.missing_chunks());
    if (!is_armed(arena, releases, generation)) return false;
    if (!made) return true;
  }
  return true;
}

// Chunks that the last plan has in its slab for blocks that stay, and this one has not, leave it. False: not yet, or
// the plan is not armed any more.
bool give_up_kept_chunks(Arena& arena, ArenaLock& lock) noexcept {
  if (arena.service != Arena::Service::kChunks || arena.slab.keeps_only(arena.next->chunks)) return true;
  const std::uint64_t generation = arena.next->generation;
  const std::uint64_t releases = arena.releases;
  Release awaited;
  bool owned = false;
  if (!arena.slab.may_give_up_kept(arena.next->chunks, &awaited, &owned)) {
    if (arena.wait_for_chunks != 0 && --arena.wait_for_chunks != 0) return false;
    // Where the device is always behind, the host waits for it once.
    if (!owned) {
      arena.streams.finish_or_give_up(lock, awaited);
      if (!is_armed(arena, releases, generation)) return false;
    }
  }
  // All of them, or none: what has left the slab is held beside it.
  if (owned || !arena.slab.may_give_up_kept(arena.next->chunks, &awaited, &owned)) {
    arena.slab.give_up_unfinished();
    arena_abandon(arena, "the last plan has blocks in chunks that this one takes out of the slab");
    return false;
  }
  arena.slab.give_up_kept(arena.next->chunks, &awaited);
  arena.slab.refill(~std::size_t{0});
  return true;
}

}  // namespace

bool arena_free_chunks(Arena& arena, ArenaLock& lock, std::size_t count) noexcept {
  const std::uint64_t releases = arena.releases;
  for (int tries = 0; tries < kTriesToMakeRoom && arena.releases == releases; ++tries) {
    const std::size_t free = arena.bootstrap.free_chunks();
    if (count <= free || arena.chunks.could_create(count - free)) return true;
    // What is mapped for nothing goes back to the driver when work on it is over.
    Region& region = arena.bootstrap.region();
    if (region.retiring() != 0) {
      if (region.retire(~std::size_t{0}) != 0) continue;
      Release awaited;
      region.await_retiring(&awaited);
      if (!awaited.empty() && arena.streams.finish_or_give_up(lock, awaited) == CUDA_SUCCESS) continue;
      if (arena.releases != releases) return false;
    }
    // Not what a plan has in its slab: that is what they are for.
    if (arena_send_away(arena, lock, count - free, [](std::size_t) { return true; }) != 0) continue;
    if (arena.releases != releases) return false;
    // Chunks that none lies in now.
    std::vector<Chunk*> taken;
    const CUresult result = arena.bootstrap.take_chunks(count, false, &taken);
    for (Chunk* const chunk : taken) arena.bootstrap.keep(chunk);
    if (result != CUDA_ERROR_NOT_READY) return result == CUDA_SUCCESS;
    const Release awaited = arena.bootstrap.awaited();
    if (arena.streams.finish_or_give_up(lock, awaited) != CUDA_SUCCESS) return false;
  }
  return false;
}

void arena_go_live(Arena& arena, ArenaLock& lock, const FollowedLane& lane) noexcept {
  // At another lane's beginning, what the iteration has made so far would cross the switch.
  if (arena.wait_for_lanes != 0 && !(lane.first && lanes_are_in_step(arena))) {
    --arena.wait_for_lanes;
    return;
  }
  if (arena.wait_for_memory != 0 && arena.plan == nullptr && --arena.wait_for_memory != 0) return;
  const bool first = !arena.planned;
  const std::uint64_t before = arena_footprint(arena);
  const std::uint64_t peak_before =
      arena.service == Arena::Service::kDriver ? arena.driver_peak : arena.chunks.counts().peak_bytes;
  if (arena.next->swaps != 0 || !arena.next->pages.empty()) {
    const std::uint64_t generation = arena.next->generation;
    const std::uint64_t releases = arena.releases;
    arena_scan_before_leaving(arena, lock);
    if (!is_armed(arena, releases, generation)) return;
    arena_read_scans(arena, lock);
    if (!is_armed(arena, releases, generation)) return;
  }
  if (!make_pages_leave(arena, lock)) return;
  if (arena.chunks.limit() != 0 && !make_room_for_slab(arena, lock)) return;
  if (!give_up_kept_chunks(arena, lock)) return;
  const SwitchTimes times = times_of_switch(arena, *arena.next);
  // What another plan has in the slab says nothing of the iteration before.
  const bool may_wait = arena.wait_for_known != 0 && arena.plan == nullptr && arena.chunks.limit() == 0;
  if (may_wait && much_is_unknown(arena, *arena.next, times)) {
    --arena.wait_for_known;
    return;
  }
  // Blocks that are served beside it meanwhile have room where pages can leave: those that it has, or enough beside it.
  const bool limited = arena.chunks.limit() != 0;
  const bool some_later = limited && (!arena.next->pages.empty() ||
                                      arena.next_needs >= arena.next->slab_bytes + arena.next->slab_bytes / 2);
  const CUresult result = arena.slab.go_live(&times, some_later);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && arena.plan == nullptr && arena_postpone(arena)) return;
  if (result != CUDA_SUCCESS) {
    arena_abandon(arena, fmt::format("the driver refused memory for the switch (error {})", static_cast<int>(result)));
    return;
  }
  arena.plan = std::move(arena.next);
  arena.plan_needs = arena.next_needs;
  arena.kept_iterations = 0;
  arena.run_watch.incomplete = 0;
  arena.run_watch.followed = 0;
  arena.run_watch.due = false;
  arena.pace_watch = {};
  arena.gain_watch = {.mallocs = arena.mallocs, .beside = beside_plan(arena)};
  arena.planned_swaps.takes_ns = 0;
  arena.refill_due = false;
  arena.limit_change.gone = false;
  arena.abandoned.clear();
  arena.phase = Arena::Phase::kLive;
  arena.planned = true;
  arena.left_for_good = false;
  arena.deviations_at_live = arena.deviations;
  arena.known_beyond = !first;
  arena.housekeeping = true;
  arena_scan_less(arena);
  arena.bootstrap.forget_needs();
  arena.loans = arena.slab.lent_chunks() != 0 ? kLoans : 0;
  arena.rest = 0;
  arena.last_rest = 0;
  if (arena.slab.is_driver_block()) {
    arena_widen_range(arena.slab.window().base, arena.slab.live_bytes());
    arena.driver_peak = std::max(arena.driver_peak, arena_footprint(arena));
  }
  arena.calm_iterations = 0;
  if (arena.plan->swaps != 0) arena.calm_needed = std::max(arena.calm_needed, kCalmWithSwaps);
  arena.deviating = false;
  ++arena.serial;
  arena_begin_swaps(arena);
  arena.to_report = {shm::StateChange::kLive, arena.plan->generation};
  arena.declined = {};
  plan_adopted(arena.plan->generation);
  if (first) {
    arena.footprint_before = peak_before;
    arena.footprint_at_end = 0;
    arena.vmm_calls_at_live = arena.chunks.counts().vmm_calls;
    arena.host_waits_at_live = arena.streams.counts().host_waits;
    arena.waits_at_live = arena.streams.counts().waits;
    arena.iteration_at_live = iterations_so_far(arena) + 1;
    if (log_wants(LogLevel::kWarn)) {
      try {
        log_notice(
            fmt::format("plan live at iteration {}: {} laid out in {} beside {} that stays; {} held before",
                        arena.iteration_at_live,
                        in_units(arena.plan->peak_load - std::min(arena.plan->peak_load, arena.plan->persistent_bytes)),
                        in_units(arena.plan->slab_bytes), in_units(arena.plan->persistent_bytes), in_units(before)));
      } catch (...) {
      }
    }
  } else {
    log(LogLevel::kInfo, "plan {} is live: slab of {} beside {} that stays, peak load {}", arena.plan->generation,
        in_units(arena.plan->slab_bytes), in_units(arena.plan->persistent_bytes), in_units(arena.plan->peak_load));
  }
  if (!arena.plan->pages.empty()) arena_begin_runs(arena, lock);
}

}  // namespace memopt::agent
