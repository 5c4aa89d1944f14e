// The device is full, and there is no limit: what is held becomes one, and blocks leave for host memory from then on. A
// program that would have ended goes on.
//
// Programs also try how much they can have. They are told: what leaves is blocks that were used, and as many bytes of
// them as are lacking. A program whose allocations come from a pool of its own gives back what it holds for nothing
// when it is refused, and asks again: only then.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/process/frameworks.h"
#include "agent/process/log.h"
#include "agent/process/options.h"

namespace memopt::agent {
namespace {

// For calls of which it is not known how much they want (modules, contexts).
constexpr std::uint64_t kSomeBytes = std::uint64_t{32} << 20;

bool program_asks_again() noexcept {
  try {
    const std::vector<shm::FrameworkStatus> loaded = loaded_frameworks();
    return std::any_of(loaded.begin(), loaded.end(), asks_again);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Bytes of blocks that were used and may leave.
std::uint64_t used_bytes(Arena& arena) noexcept {
  std::uint64_t sum = 0;
  arena.blocks.for_each([&](const Block& block) {
    if (lies_in_region(block) && !is_pinned(block) && block.touched > block.born) sum += block.bytes;
  });
  return sum;
}

// Could the arena serve the thread?
bool serves_here(const Arena& arena) noexcept {
  return arena.service == Arena::Service::kChunks && arena.failure == CUDA_SUCCESS && !arena.record_only &&
         !captures_are_open() && is_current(driver(), arena.context);
}

std::uint64_t free_bytes(const Arena& arena) noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  const CurrentContext in_context(driver(), arena.context);
  return driver().mem_get_info(&free, &total) == CUDA_SUCCESS ? free : 0;
}

// `free`: that the driver still has for the program's blocks.
void limit_to_device(Arena& arena, std::uint64_t free) noexcept {
  arena.chunks.limit_to_device(free);
  arena.swaps.limit = arena.chunks.limit();
  arena.swaps.by_device = true;
  arena.terms_due = true;
  // A plan that needs more is left.
  arena.limit_change.pending = true;
}

void say_what_could_leave(std::uint64_t wanted, std::uint64_t held, std::uint64_t used) noexcept {
  try {
    log(LogLevel::kWarn,
        "out of memory: {} wanted, {} held; with MEMOPT_SWAP=1, blocks of {} could leave for host memory",
        in_units(wanted), in_units(held), in_units(used));
  } catch (const std::bad_alloc&) {
  }
}

void say_that_blocks_leave(std::uint64_t held) noexcept {
  try {
    log(LogLevel::kWarn,
        "the device is full, {} of it held for the program: blocks leave for host memory from now on, and come back "
        "when they are used (MEMOPT_SWAP=0: the program is told that there is no memory)",
        in_units(held));
  } catch (const std::bad_alloc&) {
  }
}

// What is held is the limit from now on, if enough can leave.
bool begin(Arena& arena, std::uint64_t wanted, std::uint64_t free) noexcept {
  const std::uint64_t lacking = wanted - std::min(wanted, free);
  const std::uint64_t used = used_bytes(arena);
  if (used == 0 || lacking > used) return false;
  const std::uint64_t held = arena.chunks.counts().held_bytes;
  const bool may = options().is_on(shm::OptionId::kSwap);
  const bool told = std::exchange(arena.swaps.told, true);
  if (!may) {
    if (!told) say_what_could_leave(wanted, held, used);
    return false;
  }
  say_that_blocks_leave(held);
  limit_to_device(arena, free);
  arena_start_swapping(arena);
  return true;
}

}  // namespace

bool arena_begin_swapping(std::size_t bytes) noexcept {
  if (!arena_is_on()) return false;
  // It reads what is loaded: not with the lock.
  const bool again = program_asks_again();
  ArenaLock lock;
  Arena& arena = *memopt::agent::arena();
  if (!serves_here(arena) || bytes == 0 || bytes > arena.chunks.device_bytes()) return false;
  arena.asks_again = again;
  if (again && std::exchange(arena.refused_bytes, bytes) != bytes) return false;
  // Another thread may have begun since this one was refused.
  if (arena.chunks.limit() != 0) return arena.chunks.limit_is_device();
  return begin(arena, bytes, free_bytes(arena));
}

bool arena_relieve_by_swapping(std::size_t wanted) noexcept {
  const bool again = program_asks_again();
  ArenaLock lock;
  Arena& arena = *memopt::agent::arena();
  if (!serves_here(arena) || (again && arena.chunks.limit() == 0)) return false;
  const std::uint64_t free = free_bytes(arena);
  const std::uint64_t lacking = wanted == 0 ? kSomeBytes : wanted - std::min<std::uint64_t>(wanted, free);
  if (lacking > arena.chunks.counts().held_bytes) return false;
  if (arena.chunks.limit() == 0 && !begin(arena, wanted == 0 ? free + 1 : wanted, free)) return false;
  const std::uint64_t releases = arena.releases;
  arena.slab.give_up_unfinished();
  const std::uint64_t before = arena.chunks.counts().held_bytes;
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  // The driver wants a piece of it, with what it rounds.
  std::uint64_t left = lacking / chunk_bytes + 1;
  while (left != 0) {
    const std::size_t sent = arena_send_away(arena, lock, static_cast<std::size_t>(left));
    if (arena.releases != releases || sent == 0) break;
    left -= std::min<std::uint64_t>(left, sent);
  }
  if (arena.releases != releases) return false;
  Release ignored;
  arena.bootstrap.give_up_idle(&ignored);
  const std::uint64_t held = arena.chunks.counts().held_bytes;
  // The driver's call takes what went back: it is none of what may be held.
  if (arena.chunks.limit_is_device() && held < before) limit_to_device(arena, 0);
  return held < before;
}

}  // namespace memopt::agent
