// Memory that no block needs goes to whatever needs it: a call of the driver's that found the device full (arena.h).
//
// No more is waited for than the last uses of what could go back, one after the other until there is enough: a host
// function may wait for the very thread that asks, and what it has queued for blocks that live is none of that. Only
// where that is not enough do such blocks leave (arena_full.cpp), whose work is waited for.
#include <algorithm>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/current_context.h"
#include "agent/process/log.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// Iterations until the slab is made whole again: so many after the first time, twice as many after each further one.
constexpr std::uint32_t kFirstPause = 4;
constexpr std::uint32_t kLongestPause = 1024;
// Chunks that are made anew at one boundary.
constexpr std::size_t kRefillSlice = 8;

// Waits, each of which something goes back after.
constexpr int kPatience = 64;

bool serves(const Arena& arena) noexcept {
  return arena.service == Arena::Service::kChunks || arena.service == Arena::Service::kDriver;
}

std::uint64_t idle_bytes(const Arena& arena, Relief relief) noexcept {
  const std::uint64_t cached = arena.service == Arena::Service::kChunks ? arena.bootstrap.idle_bytes() : 0;
  return cached + (relief == Relief::kAll ? arena.slab.idle_bytes() : 0);
}

std::uint64_t held_bytes(const Arena& arena) noexcept {
  return arena.service == Arena::Service::kChunks ? arena.chunks.counts().held_bytes : arena.slab.live_bytes();
}

void pause(Arena& arena) noexcept {
  arena.relief_pause = std::clamp(arena.relief_pause * 2, kFirstPause, kLongestPause);
  arena.wait_for_memory = arena.relief_pause;
}

// The plan has no slab any more: it is armed, and goes live again when there is memory.
void leave_plan(Arena& arena) noexcept {
  ++arena.deviations;
  arena.deviating = true;
  arena.calm_iterations = 0;
  if (arena.next == nullptr) {
    arena.next = std::move(arena.plan);
    arena.next_needs = arena.plan_needs;
    arena.declined = {};
  }
  arena.plan.reset();
  arena.phase = Arena::Phase::kArmed;
  ++arena.serial;
  pause(arena);
  if (!recording()) start_recording(arena.record_only);
  arena.to_report = {shm::StateChange::kRestarted, 0};
}

void give_up_idle_slab(Arena& arena, Release* awaited) noexcept {
  // In preparation, it is mapped and nothing else. What is missing is made when the plan goes live.
  arena.slab.give_up_unfinished();
  const std::size_t gone = arena.slab.gone_chunks();
  arena.slab.give_up_idle(awaited);
  if (arena.slab.gone_chunks() == gone) return;
  ++arena.deviations;
  arena.deviating = true;
  arena.calm_iterations = 0;
  pause(arena);
  log(LogLevel::kInfo, "memory is short: {} idle chunks of the slab go back to the driver",
      arena.slab.gone_chunks() - gone);
}

}  // namespace

std::uint64_t arena_give_back(Arena& arena, ArenaLock& lock, Relief relief, Release* awaited) noexcept {
  const std::uint64_t before = held_bytes(arena);
  if (relief == Relief::kAll && arena.slab.is_driver_block()) {
    const CUdeviceptr block = arena.slab.give_up_driver_block();
    if (block == 0) return 0;
    if (arena.plan != nullptr) leave_plan(arena);
    const std::uint64_t given = before - std::min(before, held_bytes(arena));
    // It waits for the work on it.
    const Unlocked unlocked(lock);
    driver().mem_free(block);
    return given;
  }
  if (arena.service != Arena::Service::kChunks) return 0;
  if (relief == Relief::kAll) give_up_idle_slab(arena, awaited);
  arena.bootstrap.give_up_idle(awaited);
  return before - std::min(before, held_bytes(arena));
}

bool arena_relieve(Relief relief, std::size_t wanted) noexcept {
  if (!arena_is_on()) return false;
  if (relief == Relief::kBlocks) return arena_relieve_by_swapping(wanted);
  ArenaLock lock;
  Arena& arena = *memopt::agent::arena();
  if (!serves(arena) || arena.failure != CUDA_SUCCESS) return false;
  const std::uint64_t idle = idle_bytes(arena, relief);
  // Without a current context, the call is to make one.
  CUdevice current = 0;
  if (idle == 0 || (driver().current_device(&current) == CUDA_SUCCESS && current != arena.device)) return false;
  // Programs try how much they can have: nothing is given up for what can't be had.
  std::size_t free = 0;
  std::size_t total = 0;
  {
    const CurrentContext in_context(driver(), arena.context);
    if (driver().mem_get_info(&free, &total) != CUDA_SUCCESS) return false;
  }
  if (wanted > free && wanted - free > idle) return false;

  arena.held_of_late = std::max(arena.held_of_late, held_bytes(arena));
  const std::uint64_t releases = arena.releases;
  std::uint64_t given = 0;
  for (int waits = 0; waits <= kPatience; ++waits) {
    Release awaited;
    given += arena_give_back(arena, lock, relief, &awaited);
    if (wanted != 0 && given != 0 && free + given >= wanted) break;
    // While a stream captures, a wait is an error that ends the capture.
    if (arena.releases != releases || awaited.empty() || arena.streams.capturing()) break;
    // The context may be gone afterwards, with all that was held.
    if (arena.streams.finish(lock, awaited) != CUDA_SUCCESS || arena.releases != releases) break;
  }
  return given != 0;
}

std::uint64_t arena_reserve_bytes() noexcept {
  if (!arena_is_on()) return 0;
  CUdevice current = 0;
  if (driver().current_device(&current) != CUDA_SUCCESS) return 0;
  ArenaLock lock;
  const Arena& arena = *memopt::agent::arena();
  if (!serves(arena)) return 0;
  return current == arena.device ? idle_bytes(arena, Relief::kAll) : 0;
}

void arena_look_for_memory(Arena& arena) noexcept {
  if (arena.wait_for_memory != 0 && --arena.wait_for_memory != 0) return;
  // What is served beside the slab for want of it.
  arena.bootstrap.trim(~std::size_t{0});
  if (!arena.chunks.could_create(arena.slab.gone_chunks())) {
    pause(arena);
    return;
  }
  const std::size_t missing = arena.slab.gone_chunks();
  if (arena.slab.refill(arena.synchronous ? ~std::size_t{0} : kRefillSlice)) {
    // What was served beside it meanwhile goes back as after a switch.
    arena.calm_iterations = 0;
    arena.housekeeping = true;
  } else if (arena.slab.gone_chunks() == missing) {
    pause(arena);
  }
}

bool arena_postpone(Arena& arena) noexcept {
  const FollowedPlan* const wanted = arena.next.get();
  try {
    if (!arena.slab.want(
            wanted->slab_bytes, [wanted](std::uint64_t block) { return wanted->is_persistent(block); },
            wanted->chunks)) {
      return false;
    }
    arena.abandoned = "there is no memory for the plan: it is tried again";
  } catch (...) {
    return false;
  }
  arena.phase = Arena::Phase::kArmed;
  pause(arena);
  log(LogLevel::kInfo, "there is no memory for the plan: it is tried again in {} iterations", arena.wait_for_memory);
  return true;
}

}  // namespace memopt::agent
