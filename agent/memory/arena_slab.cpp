// Chunks of the slab at a limit: given up for what is not planned, and made anew for what is.
#include <algorithm>
#include <new>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/memory/page_runs.h"
#include "agent/process/log.h"

namespace memopt::agent {
namespace {

// Of the blocks and pages that the plan swaps and that are here, in the slab or beside it, the one that was used least
// lately; null: none can leave.
Block* oldest_here(Arena& arena, bool beside) noexcept {
  const Region& region = arena.bootstrap.region();
  Block* oldest = nullptr;
  std::uint64_t oldest_touched = 0;
  const auto look_at = [&](Block& block, const OwnWindow& window, std::uint64_t touched) {
    if (block.away != 0 || window.moving || window.beside != beside || arena_must_stay(arena, block)) return;
    if (oldest != nullptr && touched >= oldest_touched) return;
    oldest = &block;
    oldest_touched = touched;
  };
  for (const auto& run : arena.runs) {
    std::uint64_t touched = 0;
    region.for_each_block(run->first, run->count,
                          [&](const Block& block) { touched = std::max(touched, block.touched); });
    look_at(run->owner, *run->window, touched);
  }
  arena.slab.own_windows().for_each([&](const OwnWindow& window) {
    // One that is being made or freed is in no list.
    if (window.block == nullptr || arena.blocks.find(window.block->base) != window.block) return;
    look_at(*window.block, window, window.block->touched);
  });
  return oldest;
}

// The block leaves, and its window is not in use by any copy; null: it has not left, or another thread has it again.
// Gives the lock back, and waits.
OwnWindow* send_and_wait(Arena& arena, ArenaLock& lock, Block& block) noexcept {
  const std::uint64_t releases = arena.releases;
  const SwappedMalloc::Instance instance{block.base, block.number};
  arena_send_out(arena, lock, block, own_window(block)->beside);
  const auto away = [&]() -> OwnWindow* {
    const Block* const there = arena.releases == releases ? arena_find_swapped(arena, instance) : nullptr;
    return there != nullptr && there->away != 0 && !own_window(*there)->moving ? own_window(*there) : nullptr;
  };
  const OwnWindow* const window = away();
  if (window == nullptr) return nullptr;
  const Release uses = window->last_uses;
  return arena.streams.finish_or_give_up(lock, uses) == CUDA_SUCCESS ? away() : nullptr;
}

// Blocks whose places are others' have come back beside the slab: one leaves again, and its chunks are free.
std::size_t give_up_beside(Arena& arena, ArenaLock& lock) noexcept {
  Block* const oldest = oldest_here(arena, true);
  OwnWindow* const window = oldest != nullptr ? send_and_wait(arena, lock, *oldest) : nullptr;
  // It has been here meanwhile, and has left again.
  if (window == nullptr || !window->beside || !arena.streams.is_over(window->last_uses, true)) return 0;
  std::vector<Chunk*> freed;
  try {
    if (arena.slab.own_windows().unmap_beside(*window, &freed) != CUDA_SUCCESS) return 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
  log(LogLevel::kDebug, "{} chunks beside the slab are free: what lay there leaves again", freed.size());
  for (Chunk* const chunk : freed) arena.bootstrap.keep(chunk);
  return freed.size();
}

// Does a block own some of these bytes of the slab?
bool is_anothers(Arena& arena, std::uint64_t begin, std::uint64_t bytes) noexcept {
  for (const Span* span = arena.slab.window().map.find(begin, nullptr); span != nullptr && span->begin < begin + bytes;
       span = span->next) {
    if (span->owner != nullptr && !is_gone(*span)) return true;
  }
  return false;
}

// Chunks of the slab in which no block lies, and work is over: they are free for others, until the next iteration.
bool take_idle(Arena& arena, std::size_t count) noexcept {
  if (arena.phase != Arena::Phase::kLive || arena.chunks.limit() == 0) return false;
  std::vector<Chunk*> freed;
  try {
    arena.slab.give_up_some(count, &freed);
  } catch (const std::bad_alloc&) {
  }
  arena.bootstrap.keep_given_up(freed);
  if (freed.empty()) return false;
  ++arena.deviations;
  arena.calm_iterations = 0;
  arena.refill_due = true;
  log(LogLevel::kDebug, "{} idle chunks of the slab serve what is not planned", freed.size());
  return true;
}

// Chunks in which nothing lies any more, but which are mapped beside the slab, become free ones: so many, or fewer.
// False: there is none whose work is over.
bool gather_idle(Arena& arena, std::size_t count) noexcept {
  std::vector<Chunk*> gathered;
  arena.bootstrap.take_chunks(count, false, &gathered);
  for (Chunk* const chunk : gathered) arena.bootstrap.keep(chunk);
  return !gathered.empty();
}

}  // namespace

bool arena_take_left(Arena& arena, std::size_t count) noexcept {
  return arena.deviating && arena.plan != nullptr && arena.plan->swaps == 0 && take_idle(arena, count);
}

bool arena_take_from_slab(Arena& arena, ArenaLock& lock, std::size_t count) noexcept {
  if (take_idle(arena, count)) return true;
  Release awaited;
  if (arena_give_back(arena, lock, Relief::kAll, &awaited) != 0) return true;
  return !awaited.empty() && arena.streams.finish_or_give_up(lock, awaited) == CUDA_SUCCESS;
}

bool arena_make_place(Arena& arena, ArenaLock& lock, std::uint64_t begin, std::uint64_t bytes, bool swaps) noexcept {
  constexpr int kMostRounds = 16;
  // Blocks that leave for more than this part of it would be missed elsewhere, and could not leave from a place of the
  // slab any more: rather the block lies beside it.
  constexpr std::uint64_t kFewOf = 4;
  const std::uint64_t releases = arena.releases;
  for (int i = 0; i < kMostRounds && arena.phase == Arena::Phase::kLive && arena.releases == releases; ++i) {
    // Nothing leaves for what can't be had.
    if (swaps && is_anothers(arena, begin, bytes)) return false;
    if (arena.slab.refill_at(begin, bytes)) return true;
    const std::size_t gone = arena.slab.gone_chunks_at(begin, bytes);
    std::vector<Chunk*> freed;
    try {
      arena.slab.give_up_unswapped(gone, begin, bytes, &freed);
    } catch (const std::bad_alloc&) {
    }
    arena.bootstrap.keep_given_up(freed);
    if (!freed.empty() || gather_idle(arena, gone)) continue;
    if (!swaps && gone * kFewOf * arena.chunks.chunk_bytes() > bytes) return false;
    if (arena_send_away(arena, lock, gone, [](std::size_t) { return true; }) == 0) return false;
  }
  return false;
}

bool arena_refill_places(Arena& arena, ArenaLock& lock, const FollowedMalloc& malloc) noexcept {
  if (arena.chunks.limit() == 0 || arena.slab.gone_chunks() == 0) return false;
  const std::uint64_t generation = arena.plan->generation;
  for (std::uint32_t i = 0; i < malloc.count; ++i) {
    const std::uint64_t begin = malloc.places[i].begin;
    const std::uint64_t bytes = malloc.places[i].end - begin;
    if (arena.slab.gone_chunks_at(begin, bytes) == 0) continue;
    const bool made = arena_make_place(arena, lock, begin, bytes, malloc.swapped != nullptr);
    return made && arena.plan != nullptr && arena.plan->generation == generation;
  }
  return false;
}

std::size_t arena_give_up_planned(Arena& arena, ArenaLock& lock) noexcept {
  const std::uint64_t releases = arena.releases;
  if (const std::size_t chunks = give_up_beside(arena, lock); chunks != 0 || arena.releases != releases) return chunks;
  while (Block* const oldest = oldest_here(arena, false)) {
    const std::uint64_t place = own_window(*oldest)->place;
    const std::uint64_t bytes = oldest->bytes;
    if (send_and_wait(arena, lock, *oldest) == nullptr) return 0;
    std::vector<Chunk*> freed;
    try {
      arena.slab.give_up(place, bytes, &freed);
    } catch (const std::bad_alloc&) {
    }
    arena.bootstrap.keep_given_up(freed);
    const std::size_t count = freed.size();
    // None, where others have a part of each.
    if (count != 0) return count;
  }
  return 0;
}

}  // namespace memopt::agent
