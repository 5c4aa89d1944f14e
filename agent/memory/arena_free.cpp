// The arena's other half: frees (arena.h).
#include <cerrno>
#include <new>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/memory/points.h"
#include "agent/order/captures.h"
#include "agent/order/in_flight.h"
#include "agent/process/own_cost.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// Recorded before it happens, so that its number is not yet another block's.
void record_free_of(Arena& arena, CUdeviceptr address, StreamName stream) noexcept {
  std::uint64_t number = 0;
  {
    ArenaLock lock;
    const Block* const block = arena.blocks.find(address);
    if (block != nullptr && arena.known_streams.check(stream.handle) == CUDA_SUCCESS) number = block->number;
  }
  const int kept_errno = errno;
  if (number != 0) record_free({number, stream_number(stream)}, 0);
  errno = kept_errno;
}

[[gnu::cold, gnu::noinline]] void forget_driver_block(Arena& arena, const Block& block) noexcept {
  arena.driver_blocks.erase(block.base);
  arena.driver_bytes -= block.bytes;
}

// The block is none of the program's any more: no other thread finds it.
[[gnu::always_inline]] inline void unlist(Arena& arena, Block* block) noexcept {
  if (block->window == nullptr) [[unlikely]]
    forget_driver_block(arena, *block);
  arena.blocks.erase(block->base);
  arena.live_bytes -= block->bytes;
  if (block->pool != nullptr) [[unlikely]]
    arena.pools.freed(block->pool, block->bytes);
}

// A copy that brought the block's page back, for another block in it perhaps, is no work that a free sees; nor is one
// that took the former owner of its bytes away, where nothing has used the block since.
Release with_copies(const Block& block, Release uses) noexcept {
  uses.add_everything(block.former);
  for (std::uint32_t i = 0; i < block.former.count; ++i) {
    if (block.former.uses[i].slot == kInSlot || block.former.uses[i].slot == kOutSlot) uses.add(block.former.uses[i]);
  }
  return uses;
}

// In a window that is not the slab, or where there have been copies of ours.
[[gnu::noinline]] void give_back_otherwise(Arena& arena, Block* block, Release uses) noexcept {
  // Perhaps this block, too.
  if (arena.scans.looking) [[unlikely]]
    uses.add(arena.scans.reading);
  if (block->window->kind == Window::Kind::kSlab) {
    const bool unused = block->uses.count == 0 && !block->uses.everything();
    block->window->map.give_back(block->span, unused ? with_copies(*block, uses) : uses);
  } else if (block->window->kind == Window::Kind::kOwn) {
    arena_leave_window(arena, *block, with_copies(*block, uses));
  } else {
    arena.bootstrap.take_back(*block, arena.host.is_started() ? with_copies(*block, uses) : uses);
    // What lived across the switch to a plan is not needed again. Later the same is served off the plan each time.
    if (arena.plan != nullptr && arena.calm_iterations <= kCalm) arena.housekeeping = true;
    if (arena.chunks.is_beyond()) [[unlikely]]
      arena_keep_limit(arena);
  }
}

// Its bytes are free, once `uses` are over.
[[gnu::always_inline]] inline void give_back(Arena& arena, Block* block, const Release& uses) noexcept {
  if (block->window->kind == Window::Kind::kSlab && !arena.host.is_started()) [[likely]] {
    block->window->map.give_back(block->span, uses);
  } else {
    give_back_otherwise(arena, block, uses);
  }
  arena.blocks.drop(block);
}

// A graph may use the bytes for as long as it lives: they stay as they are, without being a block.
void unlist_kept(Arena& arena, Block* block) noexcept {
  const std::uint64_t driver_bytes = arena.driver_bytes;
  unlist(arena, block);
  arena.driver_bytes = driver_bytes;
}

// `uses`: what is to be over before they are free, once no graph names them.
void abandon_kept(Arena& arena, Block* block, const Release& uses) noexcept {
  block->uses = uses;
  try {
    arena.freed_but_named.push_back(block);
  } catch (const std::bad_alloc&) {
    // They stay for good.
  }
}

// Driver calls are to be made before the bytes are free: events on the streams that are not over, a wait for what the
// host can see. The lock is given back for them; the block is in no list meanwhile, and its bytes are its own.
[[gnu::cold, gnu::noinline]] CUresult free_slowly(Arena& arena, ArenaLock& lock, Block* block, Release uses,
                                                  const StreamTable::Free& free, bool barrier) noexcept {
  const bool kept = block->kept;
  const std::uint64_t releases = arena.releases;
  if (kept) {
    unlist_kept(arena, block);
  } else {
    unlist(arena, block);
  }
  CUresult result = CUDA_SUCCESS;
  if (free.needs_wait) result = arena.streams.finish_all(lock);
  if (free.needs_wait && result == CUDA_SUCCESS) {
    uses = {};
  } else if (free.needs_fold) {
    // Events first: what others queue during the wait is none of what the bytes wait for.
    arena.streams.fold(lock, free, &uses);
  } else {
    arena.streams.record_events(lock, uses);
  }
  if (barrier) {
    if (!free.needs_wait) result = arena.streams.finish_host_visible(lock);
    if (uses.unordered) {
      uses.unordered = false;
      arena.streams.record_events(lock, uses);
    }
    arena.streams.end_free(free, uses);
  }
  arena_failed(arena, result);
  if (arena.releases == releases) {
    if (kept) {
      abandon_kept(arena, block, uses);
    } else {
      give_back(arena, block, uses);
    }
  } else {
    arena.blocks.drop(block);  // all memory went with its context meanwhile
  }
  return result;
}

// The driver made the block, and its free waits for whatever uses it.
[[gnu::cold, gnu::noinline]] CUresult free_by_driver(Arena& arena, ArenaLock& lock, Block* block) noexcept {
  unlist(arena, block);
  const CUdeviceptr address = block->base;
  const std::uint64_t releases = arena.releases;
  CUresult result = CUDA_SUCCESS;
  {
    const Unlocked unlocked(lock);
    result = driver().mem_free(address);
  }
  if (result != CUDA_SUCCESS && arena.releases == releases && arena.blocks.reserve_one()) {
    try {
      arena.driver_blocks.emplace(address, block);
      arena.driver_bytes += block->bytes;
      arena.live_bytes += block->bytes;
      arena.blocks.insert(block);
      return result;
    } catch (const std::bad_alloc&) {
      // It is still the driver's, and not followed any more.
    }
  }
  arena.blocks.drop(block);
  return result;
}

}  // namespace

namespace {

Served free_plainly(CUdeviceptr address) noexcept {
  if (arena() == nullptr || !arena_may_own(address)) return {};
  const CostProbe probe;
  queued();  // whatever this thread announced before
  Arena& arena = *memopt::agent::arena();
  if (recording()) [[unlikely]]
    record_free_of(arena, address, {});
  ArenaLock lock;
  Block* block = arena.blocks.find(address);
  if (block != nullptr && block->away != 0) [[unlikely]]
    block = arena_settled(arena, lock, block);
  if (block == nullptr) [[unlikely]] {
    // In the range of our chunks nothing else lies.
    if (arena.service != Arena::Service::kChunks) return {};
    return {true, CUDA_ERROR_INVALID_VALUE};
  }
  if (arena.failure != CUDA_SUCCESS) [[unlikely]]
    return {true, arena.failure};
  if (block->window == nullptr && !block->kept) [[unlikely]]
    return {true, free_by_driver(arena, lock, block)};
  // All that is queued now, whether it was seen to use the block or not: natively the free would wait for it.
  Release uses;
  if (!block->kept && arena.streams.free_at_once(&uses)) [[likely]] {
    unlist(arena, block);
    give_back(arena, block, uses);
    return {true, CUDA_SUCCESS};
  }
  const StreamTable::Free barrier = arena.streams.begin_free(&uses);
  if (block->kept || barrier.needs_fold || barrier.needs_wait || arena.streams.has_visible() ||
      arena.streams.needs_events(uses)) [[unlikely]]
    return {true, free_slowly(arena, lock, block, uses, barrier, true)};
  arena.streams.end_free(barrier, uses);
  unlist(arena, block);
  give_back(arena, block, uses);
  return {true, CUDA_SUCCESS};
}

Served free_in_order(CUdeviceptr address, StreamName stream) noexcept {
  if (arena() == nullptr || !arena_may_own(address)) return {};
  const CostProbe probe;
  queued();
  // A free in a capture is a node of the graph, about memory of graphs: the driver's to answer.
  if (is_captured(stream)) return {};
  Arena& arena = *memopt::agent::arena();
  if (recording()) [[unlikely]]
    record_free_of(arena, address, stream);
  ArenaLock lock;
  // As the driver would say; asked before anything is noted.
  if (const CUresult refusal = arena.known_streams.check(stream.handle); refusal != CUDA_SUCCESS) [[unlikely]]
    return {arena.service == Arena::Service::kChunks, refusal};
  Block* block = arena.blocks.find(address);
  if (block != nullptr && block->away != 0) [[unlikely]]
    block = arena_settled(arena, lock, block);
  if (block == nullptr) [[unlikely]] {
    if (arena.service != Arena::Service::kChunks) return {};
    return {true, CUDA_ERROR_INVALID_VALUE};
  }
  if (arena.failure != CUDA_SUCCESS) [[unlikely]]
    return {true, arena.failure};
  if (block->kept) [[unlikely]] {
    const StreamUse use = arena.streams.begin(stream);
    queued();
    Release uses = arena.streams.release_in_order(use);
    uses.add(block->uses);
    uses.add(block->former);
    if (arena.streams.is_mixed(static_cast<StreamSlot>(use.slot))) uses.add_everything();
    unlist_kept(arena, block);
    abandon_kept(arena, block, uses);
    return {true, CUDA_SUCCESS};
  }
  if (block->window == nullptr) {
    // Freed by the driver, after this: it knows the order itself.
    unlist(arena, block);
    arena.blocks.drop(block);
    return {};
  }
  const StreamUse use = arena.streams.begin(stream);
  queued();
  Release uses = arena.streams.release_in_order(use);
  // A plain allocation that nothing on this stream has used: its former users are not known to be before the free.
  if (!is_ready(arena, *block, static_cast<StreamSlot>(use.slot))) uses.add(block->former);
  if (arena.streams.is_mixed(static_cast<StreamSlot>(use.slot))) [[unlikely]]
    return {true, free_slowly(arena, lock, block, uses, arena.streams.mixed_free(uses), false)};
  if (arena.streams.needs_events(uses)) [[unlikely]]
    return {true, free_slowly(arena, lock, block, uses, {}, false)};
  unlist(arena, block);
  give_back(arena, block, uses);
  return {true, CUDA_SUCCESS};
}

}  // namespace

void arena_give_back_named(Arena& arena, ArenaLock& lock, Block* block) noexcept {
  Release uses = block->uses;
  const std::uint64_t releases = arena.releases;
  if (arena.streams.needs_events(uses)) arena.streams.record_events(lock, uses);
  if (arena.releases == releases) give_back(arena, block, uses);
}

Served arena_free(CUdeviceptr address) noexcept {
  const Served served = free_plainly(address);
  look_for_points_behind_free();
  return served;
}

Served arena_free_async(CUdeviceptr address, StreamName stream) noexcept {
  const Served served = free_in_order(address, stream);
  look_for_points_behind_free();
  return served;
}

}  // namespace memopt::agent
