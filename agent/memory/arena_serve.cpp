// The arena's memory for blocks that no plan places (arena.h).
#include <algorithm>
#include <vector>

#include "agent/link/link.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "shm/plan.h"

namespace memopt::agent {

bool arena_note_driver_block(Arena& arena, Block& block) noexcept {
  try {
    arena.driver_blocks.emplace(block.base, &block);
  } catch (...) {
    return false;
  }
  arena_widen_range(block.base, block.bytes);
  arena.driver_bytes += block.bytes;
  arena.driver_peak = std::max(arena.driver_peak, arena.driver_bytes + arena.slab.live_bytes());
  return true;
}

namespace {

std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + shm::kPlanAlignment - 1) / shm::kPlanAlignment * shm::kPlanAlignment;
}

CUresult serve_by_driver(Arena& arena, ArenaLock& lock, Block& block) noexcept {
  CUdeviceptr address = 0;
  const std::uint64_t releases = arena.releases;
  CUresult result = CUDA_SUCCESS;
  {
    const Unlocked unlocked(lock);
    result = driver().mem_alloc(&address, block.bytes);
  }
  if (result != CUDA_SUCCESS) return result;
  block.base = address;
  block.window = nullptr;
  if (arena.releases == releases && arena_note_driver_block(arena, block)) return CUDA_SUCCESS;
  const Unlocked unlocked(lock);
  driver().mem_free(address);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// In bytes of the slab that no block owns; false: there are not as many side by side. What is made when the program
// leaves its first plan may stay, as an optimizer's states that come behind the loop which is planned: it lies at the
// end of what is free, where it is in the way of few. Most blocks of a plan have low places, and only where much is
// live higher ones.
bool serve_in_slab(Arena& arena, Block& block) noexcept {
  Window& window = arena.slab.window();
  const std::uint64_t bytes = rounded(block.bytes);
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (!window.map.find_free(bytes, &begin, &end)) return false;
  if (!arena.known_beyond) begin = std::max(begin, (end - bytes) / shm::kPlanAlignment * shm::kPlanAlignment);
  Block* in_the_way = nullptr;
  Span* const span = window.map.take(begin, begin + bytes, &block, nullptr, &block.former, &in_the_way);
  if (span == nullptr) return false;
  block.span = span;
  block.window = &window;
  block.base = window.base + begin;
  return true;
}

// When bytes of the slab that no block owns serve a block which the plan does not place there: it lies in the way of
// those that it does.
enum class SlabUse { kNever, kLast, kFirst };

// From what is held, then from free bytes of the slab (kFirst), then from new chunks; from the slab (kLast) where the
// device has no more. CUDA_ERROR_NOT_READY: what could serve is still in use (Bootstrap::awaited).
CUresult serve_from_chunks(Arena& arena, Block& block, SlabUse use) noexcept {
  const bool has_slab = arena.slab.live_bytes() != 0 && !arena.limit_change.dissolving;
  if (has_slab) {
    const CUresult held = arena.bootstrap.serve(block, true);
    if (held == CUDA_SUCCESS || held == CUDA_ERROR_NOT_READY) return held;
    if (use == SlabUse::kFirst && serve_in_slab(arena, block)) return CUDA_SUCCESS;
    arena.housekeeping = true;
  }
  const CUresult result = arena.bootstrap.serve(block, false);
  const bool may_help = result == CUDA_ERROR_OUT_OF_MEMORY && use == SlabUse::kLast && has_slab;
  return may_help && serve_in_slab(arena, block) ? CUDA_SUCCESS : result;
}

// So many chunks are free, one by one kept from other threads that want room, too. Gives the lock back before.
bool gather_chunks(Arena& arena, ArenaLock& lock, std::size_t count) noexcept {
  std::vector<Chunk*> taken;
  if (arena_take_chunks(arena, lock, count, &taken) != CUDA_SUCCESS) return false;
  for (Chunk* const chunk : taken) arena.bootstrap.keep(chunk);
  return true;
}

// What is used least leaves until there is room; where nothing can, the limit is passed.
[[gnu::cold, gnu::noinline]] CUresult serve_at_limit(Arena& arena, ArenaLock& lock, Block& block,
                                                     SlabUse use) noexcept {
  constexpr int kPatience = 256;
  // From then on chunks are gathered, as other threads take what leaves.
  constexpr int kTriesAlone = 4;
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  // Programs try how much they can have.
  if (block.bytes > arena.chunks.device_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto chunks = static_cast<std::size_t>((block.bytes + chunk_bytes - 1) / chunk_bytes);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < kPatience && result != CUDA_SUCCESS; ++i) {
    // What is only being prepared holds up what could leave.
    arena.slab.give_up_unfinished();
    const std::uint64_t releases = arena.releases;
    // A block that does not begin with a chunk has one more.
    const bool sent =
        arena_take_left(arena, chunks) || (i < kTriesAlone ? arena_send_away_for_block(arena, lock, chunks) != 0
                                                           : gather_chunks(arena, lock, chunks + 1));
    if (arena.releases != releases) return CUDA_ERROR_NOT_SUPPORTED;
    // Rather than passing the limit, or lying in a plan's places.
    if (!sent && arena_take_from_slab(arena, lock, chunks)) {
      if (arena.releases != releases) return CUDA_ERROR_NOT_SUPPORTED;
      result = serve_from_chunks(arena, block, use);
      if (result == CUDA_SUCCESS) break;
    }
    if (!sent && use == SlabUse::kNever) result = serve_from_chunks(arena, block, SlabUse::kLast);
    if (result == CUDA_SUCCESS) break;
    if (!sent) arena.chunks.allow_beyond(true);
    result = serve_from_chunks(arena, block, use);
    arena.chunks.allow_beyond(false);
    if (result == CUDA_ERROR_NOT_READY) {
      const Release uses = arena.bootstrap.awaited();
      if (arena.streams.finish_or_give_up(lock, uses) != CUDA_SUCCESS) return CUDA_ERROR_OUT_OF_MEMORY;
      if (arena.releases != releases) return CUDA_ERROR_NOT_SUPPORTED;
      // What another thread has only announced can't be waited for.
      if (!arena.streams.is_over(uses, false)) arena_pause(lock);
      if (arena.releases != releases) return CUDA_ERROR_NOT_SUPPORTED;
    } else if (result != CUDA_SUCCESS && !sent) {
      break;
    }
  }
  arena_note_beyond(arena);
  return result == CUDA_ERROR_NOT_READY ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

}  // namespace

CUresult arena_serve_dynamically(Arena& arena, ArenaLock& lock, Block& block, bool from_slab) noexcept {
  // What is waited for may be used by other threads meanwhile, and be in use again.
  constexpr int kPatience = 64;
  if (arena.service == Arena::Service::kDriver) return serve_by_driver(arena, lock, block);
  // At a limit rather other blocks leave: what lies in the slab's places once would displace others, and these others,
  // in each iteration. Nor does a program that has left its plan get what could not leave any more: idle chunks of the
  // slab serve it elsewhere.
  const bool limited = arena.chunks.limit() != 0;
  const std::uint64_t natively = framework_reserved();
  // Rather in the way of others than holding more than the framework's own allocator would.
  const bool too_much = !limited && natively != 0 && arena.chunks.counts().held_bytes + block.bytes > natively;
  const SlabUse use = (from_slab || too_much) && !(limited && arena.deviating) ? SlabUse::kFirst
                      : limited                                                ? SlabUse::kNever
                                                                               : SlabUse::kLast;
  arena.bootstrap.set_reference(natively);
  CUresult result = serve_from_chunks(arena, block, use);
  for (int i = 0; result == CUDA_ERROR_NOT_READY; ++i) {
    const Release uses = arena.bootstrap.awaited();
    if (arena.streams.finish(lock, uses) != CUDA_SUCCESS) return CUDA_ERROR_OUT_OF_MEMORY;
    if (i == kPatience) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    if (arena.service != Arena::Service::kChunks) return CUDA_ERROR_NOT_SUPPORTED;
    result = serve_from_chunks(arena, block, use);
  }
  // First what a framework's own pool holds for nothing (arena_full.cpp).
  const bool asks_again = arena.asks_again && arena.chunks.limit_is_device() && arena.refused_bytes != block.bytes;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && arena.chunks.limit() != 0 && !asks_again) [[unlikely]]
    result = serve_at_limit(arena, lock, block, use);
  // Now, not before the waits: its bytes may have been used since by operations that are not over.
  block.born = block.touched = arena.tickets;
  if (result == CUDA_SUCCESS) arena.refused_bytes = 0;
  return result;
}

}  // namespace memopt::agent
