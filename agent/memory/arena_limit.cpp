// The limit: where it comes from, how it is changed while the program runs, and how what is held comes below it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/captures.h"
#include "agent/process/log.h"
#include "agent/process/options.h"
#include "shm/sizes.h"

namespace memopt::agent {
namespace {

// Of what is held beyond the limit, this part is given up at one call, at least so many chunks: a few tens of calls,
// fewer than an iteration has, are enough, and none of them takes long.
constexpr std::uint64_t kPart = 4;
constexpr std::uint64_t kLeastChunks = 32;
// Calls that are let pass after one at which nothing could be given up: twice as many each time.
constexpr std::uint32_t kLongestRest = 256;
// Calls at which it is looked at what a program needs without a plan.
constexpr std::uint32_t kMostLooks = 1 << 18;

// What was set while the program runs, in the place of the option: it holds in the next context, too. Guarded by the
// arena's lock.
constinit char g_text[shm::kLongestLimit + 1] = {};
constinit bool g_changed = false;

std::string_view limit_text() noexcept {
  if (!g_changed) return options().value(shm::OptionId::kLimit);
  return std::strcmp(g_text, shm::kNoLimit.data()) == 0 ? std::string_view() : std::string_view(g_text);
}

void apply(Arena& arena, std::string_view text) noexcept {
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  arena.limit_change.gone = text.empty() && arena.chunks.limit() != 0;
  if (text.empty()) {
    arena.chunks.set_limit(0);
    return;
  }
  const std::uint64_t limit = shm::limit_bytes(text, arena.chunks.device_bytes());
  arena.chunks.set_limit(std::max(limit / chunk_bytes, std::uint64_t{1}) * chunk_bytes);
  arena.swaps.limit = arena.chunks.limit();
  arena.swaps.by_device = false;
  arena_start_swapping(arena);
}

std::size_t chunks_beyond(const Arena& arena) noexcept {
  if (!arena.chunks.is_beyond()) return 0;
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  const std::uint64_t beyond = arena.chunks.counts().held_bytes - arena.chunks.limit();
  return static_cast<std::size_t>((beyond + chunk_bytes - 1) / chunk_bytes);
}

// See Settling. False: not yet.
bool settle(Arena& arena) noexcept {
  Settling& settling = arena.limit_change.settling;
  if (settling.until == 0) return true;
  const std::uint64_t idle = arena.bootstrap.idle_chunks() * arena.chunks.chunk_bytes();
  const std::uint64_t in_use = arena.chunks.counts().held_bytes - idle;
  settling.in_use = std::max(settling.in_use, in_use);
  if (arena.mallocs < settling.until && ++settling.looks < kMostLooks) return false;
  arena.bootstrap.trim(~std::size_t{0}, settling.in_use - in_use);
  return true;
}

}  // namespace

void arena_limit(Arena& arena) noexcept {
  const std::string_view text = limit_text();
  if (text.empty()) return;
  if (arena.service != Arena::Service::kChunks) {
    log(LogLevel::kWarn, "MEMOPT_LIMIT has no effect: {}", arena.why);
    return;
  }
  apply(arena, text);
}

void arena_start_swapping(Arena& arena) noexcept {
  if (arena.host.is_started()) return;
  arena.host.start(arena.chunks.chunk_bytes(), shm::size_bytes(options().value(shm::OptionId::kHostLimit)),
                   arena.context);
  arena.bootstrap.region().set_host(&arena.host);
  __atomic_store_n(&arena_limited, true, __ATOMIC_RELAXED);
}

NewLimit arena_set_limit(std::string_view text) {
  if (!shm::is_new_limit(text)) return {.error = fmt::format("expected {}", shm::kNewLimitValues)};
  if (arena() == nullptr) return {.error = "the program has not allocated device memory yet: no limit can be set"};
  ArenaLock lock;
  Arena& arena = *memopt::agent::arena();
  if (arena.service != Arena::Service::kChunks) {
    return {.error = "no limit can be set: " + (arena.why.empty() ? "no device memory is served yet" : arena.why)};
  }
  text.copy(g_text, text.size());
  g_text[text.size()] = '\0';
  g_changed = true;
  apply(arena, limit_text());
  // It is another limit: what was said of the last one does not hold of it.
  arena.swaps.beyond = 0;
  arena.swaps.beyond_why.clear();
  arena.swaps.note.clear();
  arena.swaps.told = false;
  arena.terms_due = true;
  arena.limit_change.pending = true;
  arena.limit_change.is_new = true;
  arena.limit_change.vain = 0;
  arena.limit_change.rest = 0;
  return {.error = {}, .limit = arena.chunks.limit(), .held = arena.chunks.counts().held_bytes};
}

void arena_keep_limit(Arena& arena) noexcept { arena.bootstrap.trim(chunks_beyond(arena)); }

void arena_follow_limit(Arena& arena, ArenaLock& lock) noexcept {
  LimitChange& change = arena.limit_change;
  if (captures_are_open()) return;
  if (change.rest != 0) {
    --change.rest;
    return;
  }
  arena_fit_plans(arena);
  const std::uint64_t before = arena.chunks.counts().held_bytes;
  const std::uint64_t releases = arena.releases;
  Release ignored;
  if (change.dissolving) {
    if (!arena.runs.empty()) arena_leave_runs(arena, lock, arena.plan.get());
    if (arena.releases != releases) return;
  }
  // Another thread may have taken up a plan meanwhile.
  if (change.dissolving) {
    change.dissolving = !arena.slab.dissolve(&ignored);
    if (!change.dissolving) arena_fit_plans(arena);
  }
  arena_keep_limit(arena);
  if (const std::uint64_t beyond = chunks_beyond(arena); beyond != 0) {
    arena_send_away(arena, lock, std::min(beyond, std::max(kLeastChunks, beyond / kPart)));
    if (arena.releases != releases) return;
    arena_keep_limit(arena);
  }
  if (!arena.chunks.is_beyond() && !change.dissolving) {
    if (!settle(arena)) return;
    change = {.gone = change.gone};
    return;
  }
  if (arena.chunks.counts().held_bytes < before) {
    change.vain = 0;
    return;
  }
  change.rest = std::min(1U << std::min(change.vain, 31U), kLongestRest);
  change.vain = std::min(change.vain + 1, LimitChange::kPassed);
  arena_note_beyond(arena);
}

}  // namespace memopt::agent
