// The arena's memory for blocks that no plan places (arena.h).
#include <algorithm>

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

// In bytes of the slab that no block owns; false: there are not as many side by side.
bool serve_in_slab(Arena& arena, Block& block) noexcept {
  Window& window = arena.slab.window();
  const std::uint64_t bytes = rounded(block.bytes);
  std::uint64_t begin = 0;
  if (!window.map.find_free(bytes, &begin)) return false;
  Block* in_the_way = nullptr;
  Span* const span = window.map.take(begin, begin + bytes, &block, nullptr, &block.former, &in_the_way);
  if (span == nullptr) return false;
  block.span = span;
  block.window = &window;
  block.base = window.base + begin;
  return true;
}

// From what is held, then, `from_slab`, from free bytes of the slab, then from new chunks; from the slab in any case
// where the device has no more. CUDA_ERROR_NOT_READY: what could serve is still in use (Bootstrap::awaited).
CUresult serve_from_chunks(Arena& arena, Block& block, bool from_slab) noexcept {
  if (arena.slab.live_bytes() != 0) {
    const CUresult held = arena.bootstrap.serve(block, true);
    if (held == CUDA_SUCCESS || held == CUDA_ERROR_NOT_READY) return held;
    if (from_slab && serve_in_slab(arena, block)) return CUDA_SUCCESS;
    arena.housekeeping = true;
  }
  const CUresult result = arena.bootstrap.serve(block, false);
  const bool may_help = result == CUDA_ERROR_OUT_OF_MEMORY && !from_slab && arena.slab.live_bytes() != 0;
  return may_help && serve_in_slab(arena, block) ? CUDA_SUCCESS : result;
}

}  // namespace

CUresult arena_serve_dynamically(Arena& arena, ArenaLock& lock, Block& block, bool from_slab) noexcept {
  // What is waited for may be used by other threads meanwhile, and be in use again.
  constexpr int kPatience = 64;
  if (arena.service == Arena::Service::kDriver) return serve_by_driver(arena, lock, block);
  CUresult result = serve_from_chunks(arena, block, from_slab);
  for (int i = 0; result == CUDA_ERROR_NOT_READY; ++i) {
    const Release uses = arena.bootstrap.awaited();
    if (arena.streams.finish(lock, uses) != CUDA_SUCCESS || i == kPatience) return CUDA_ERROR_OUT_OF_MEMORY;
    if (arena.service != Arena::Service::kChunks) return CUDA_ERROR_NOT_SUPPORTED;
    result = serve_from_chunks(arena, block, from_slab);
  }
  return result;
}

}  // namespace memopt::agent
