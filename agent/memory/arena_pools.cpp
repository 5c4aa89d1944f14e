// The program's stream-ordered pools, as the hooks tell of them and ask about them (arena.h, memory_pools.h).
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"

namespace memopt::agent {

void note_pool_created(CUmemoryPool pool, const CUmemPoolProps& properties) noexcept {
  // Programs make their pools before they allocate.
  Arena* const made = make_arena();
  if (made == nullptr) return;
  ArenaLock lock;
  made->pools.created(pool, properties);
}

void note_pool_destroyed(CUmemoryPool pool) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->pools.destroyed(pool);
}

void note_pool_access(CUmemoryPool pool, CUdevice device) noexcept {
  Arena* const made = make_arena();
  if (made == nullptr) return;
  ArenaLock lock;
  made->pools.accessible(pool, device);
}

void note_current_pool_changed() noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->pools.current_may_have_changed();
}

void arena_pool_use(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t* value) noexcept {
  const std::uint64_t held = arena_reserve_bytes();
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->pools.add_use(pool, attribute, held, value);
}

void arena_pool_reset(CUmemoryPool pool, CUmemPool_attribute attribute) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->pools.reset_high(pool, attribute);
}

void arena_pool_trim(CUmemoryPool pool, std::size_t keep) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  Arena& now = *arena();
  if (now.pools.serves(pool) && now.bootstrap.cached_bytes() > keep) arena_trim(now);
}

void arena_trim(Arena& arena) noexcept {
  arena.slab.give_up_unfinished();
  arena.bootstrap.trim(~std::size_t{0});
}

}  // namespace memopt::agent
