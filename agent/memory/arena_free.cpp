// The arena's other half: frees (arena.h).
#include <cerrno>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/captures.h"
#include "agent/order/in_flight.h"
#include "agent/process/own_cost.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

void drop_block(Arena& arena, Block* block) noexcept {
  arena.blocks.erase(block->base);
  arena.live_bytes -= block->bytes;
  if (block->pool != nullptr) [[unlikely]]
    arena.pools.freed(block->pool, block->bytes);
  arena.blocks.drop(block);
}

// Recorded before it happens, so that its number is not yet another block's.
void record_free_of(Arena& arena, CUdeviceptr address, std::uint64_t stream) noexcept {
  std::uint64_t number = 0;
  {
    ArenaLock lock;
    const Block* const block = arena.blocks.find(address);
    if (block != nullptr) number = block->number;
  }
  const int kept_errno = errno;
  if (number != 0) record_free({number, stream}, 0);
  errno = kept_errno;
}

// A graph may use the bytes for as long as it lives: they stay as they are, without being a block.
void abandon_kept(Arena& arena, Block* block) noexcept {
  if (block->window == nullptr) arena.driver_blocks.erase(block->base);
  arena.blocks.erase(block->base);
  arena.live_bytes -= block->bytes;
  if (block->pool != nullptr) arena.pools.freed(block->pool, block->bytes);
}

// The bytes are nobody's any more, once `uses` are over.
void give_back(Arena& arena, Block* block, Release uses) noexcept {
  arena.streams.record_events(uses);
  if (block->window->kind == Window::Kind::kSlab) [[likely]] {
    block->window->map.give_back(block->span, uses);
  } else {
    arena.bootstrap.take_back(*block, uses);
    // What lived across the switch to a plan is not needed again. Later the same is served off the plan each time.
    if (arena.plan != nullptr && arena.calm_iterations <= kCalm) arena.housekeeping = true;
  }
  drop_block(arena, block);
}

}  // namespace

Served arena_free(CUdeviceptr address) noexcept {
  if (arena() == nullptr || !arena_may_own(address)) return {};
  const CostProbe probe;
  queued();  // whatever this thread announced before
  Arena& arena = *memopt::agent::arena();
  if (recording()) [[unlikely]]
    record_free_of(arena, address, 0);
  ArenaLock lock;
  Block* const block = arena.blocks.find(address);
  if (block == nullptr) [[unlikely]] {
    // In the range of our chunks nobody else has anything.
    if (arena.service != Arena::Service::kChunks) return {};
    return {true, CUDA_ERROR_INVALID_VALUE};
  }
  arena.streams.finish_host_visible();
  if (block->kept) [[unlikely]] {
    abandon_kept(arena, block);
    return {true, CUDA_SUCCESS};
  }
  if (block->window == nullptr) {
    // The driver's own free waits for whatever uses the block.
    const CUresult result = driver().mem_free(block->base);
    if (result == CUDA_SUCCESS) {
      arena.driver_blocks.erase(block->base);
      arena.driver_bytes -= block->bytes;
      drop_block(arena, block);
    }
    return {true, result};
  }
  Release uses = block->uses;
  // Never touched: then what was before still holds.
  if (uses.empty()) uses = block->former;
  if (block->escaped) uses.everything = true;
  give_back(arena, block, uses);
  return {true, CUDA_SUCCESS};
}

Served arena_free_async(CUdeviceptr address, StreamName stream) noexcept {
  if (arena() == nullptr || !arena_may_own(address)) return {};
  const CostProbe probe;
  queued();
  // A free in a capture is a node of the graph, about memory of graphs: the driver's to answer.
  if (is_captured(stream)) return {};
  Arena& arena = *memopt::agent::arena();
  if (recording()) [[unlikely]]
    record_free_of(arena, address, stream_number(stream));
  ArenaLock lock;
  Block* const block = arena.blocks.find(address);
  if (block == nullptr) [[unlikely]] {
    if (arena.service != Arena::Service::kChunks) return {};
    return {true, CUDA_ERROR_INVALID_VALUE};
  }
  if (block->kept) [[unlikely]] {
    abandon_kept(arena, block);
    return {true, CUDA_SUCCESS};
  }
  if (block->window == nullptr) {
    // Freed by the driver, after this: it knows the order itself.
    arena.driver_blocks.erase(block->base);
    arena.driver_bytes -= block->bytes;
    drop_block(arena, block);
    return {};
  }
  const StreamUse use = arena.streams.begin(stream);
  queued();
  Release uses;
  uses.add(use);
  // A plain allocation that nothing on this stream has used: its former users are not known to be before the free.
  if ((block->ready >> use.slot & 1) == 0) uses.add(block->former);
  give_back(arena, block, uses);
  return {true, CUDA_SUCCESS};
}

}  // namespace memopt::agent
