// What plans may swap for: told to the planner when it is known, and again when it changes.
#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "agent/link/link.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/memory/copy_rates.h"
#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/process/log.h"
#include "agent/recording/device_times.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// One operation of so many is measured where there is a limit: swaps are planned as soon as nearly all operations have
// a time, and until then copies on demand cost far more than events.
constexpr std::uint32_t kEveryAtLimit = 4;
// Iterations for which a program is recorded when the limit has changed, though it keeps to one that is known: until
// the planner knows how long its operations take.
constexpr std::uint64_t kCalmAtLimit = 64;

// Of a device that is full plans are to leave this part: where the program leaves a plan there is nothing beyond it.
constexpr std::uint64_t kHeadroomPart = 32;

// False where they can't be.
bool measure(Arena& arena, ArenaLock& lock) {
  const std::uint64_t releases = arena.releases;
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  const CUstream out = arena.streams.own_stream(kOutSlot);
  const CUstream in = arena.streams.own_stream(kInSlot);
  std::vector<Chunk*> pieces;
  const auto count = static_cast<std::size_t>((kLeastPiece + chunk_bytes - 1) / chunk_bytes);
  if (arena_take_chunks(arena, lock, count, &pieces) != CUDA_SUCCESS) return false;
  const std::uint64_t device = arena.chunks.reserve(kLeastPiece);
  CopyRates rates;
  bool measured = false;
  std::string why = "there are no addresses for it";
  if (device != 0 && arena.chunks.map(device, pieces) == CUDA_SUCCESS) {
    const CUcontext context = arena.context;
    {
      const Unlocked unlocked(lock);
      const BesideCaptures beside(driver());
      const CurrentContext current(driver(), context);
      measured = measure_copies(driver(), device, out, in, &rates, &why);
    }
    if (arena.releases != releases) {
      // All else went with its context, the addresses too.
      driver().unmap(device, pieces.size() * chunk_bytes);
      for (Chunk* const piece : pieces) {
        driver().release(piece->handle);
        delete piece;
      }
      return false;
    }
    arena.chunks.unmap(device, pieces.size() * chunk_bytes);
  }
  if (device != 0) arena.chunks.unreserve(device, kLeastPiece);
  // Not kept: small blocks would open a window of their own for a free chunk.
  for (Chunk* const piece : pieces) arena.chunks.release(piece);
  if (!measured) {
    log(LogLevel::kInfo, "no swaps are planned: {}", why);
    return false;
  }
  log(LogLevel::kDebug,
      "copies: {:.2f} bytes/ns to the host in pieces of {}, {:.0f} ns before; {:.2f} back in pieces of {}, {:.0f} ns",
      rates.out, rates.out_piece, rates.out_latency, rates.in, rates.in_piece, rates.in_latency);
  arena.copy_rates = rates;
  return true;
}

// It may get another plan: the planner sees what it does until then.
void record_again(Arena& arena) noexcept {
  arena.declined.calm_iterations = 0;
  arena.declined.calm_needed = std::max(arena.declined.calm_needed, kCalmAtLimit);
  arena.calm_iterations = 0;
  arena.calm_needed = std::max(arena.calm_needed, kCalmAtLimit);
  arena_record_anew(arena);
}

// False: nothing new was told.
bool tell(Arena& arena, ArenaLock& lock) noexcept {
  if (arena.chunks.limit() == 0 && !arena.terms_told) return false;
  try {
    const std::uint64_t releases = arena.releases;
    if (!arena.copy_rates && (!measure(arena, lock) || arena.releases != releases)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  const CopyRates& rates = *arena.copy_rates;
  std::uint64_t limit = arena.chunks.limit();
  if (arena.chunks.limit_is_device()) limit -= limit / kHeadroomPart;
  const shm::SwapTermsBody terms{rates.out,
                                 rates.in,
                                 rates.out_latency,
                                 rates.in_latency,
                                 arena.chunks.chunk_bytes(),
                                 limit,
                                 (arena.pages_stay ? shm::kPersistentStays : 0) | (limit == 0 ? shm::kNoSwaps : 0)};
  if (!shm::is_valid(terms)) return false;
  arena.terms_told = true;
  tell_swap_terms(terms);
  const std::uint32_t every = shm::sampling(options().value(shm::OptionId::kDeviceTimes));
  start_device_times(limit != 0 ? std::min(every, kEveryAtLimit) : every);
  return true;
}

}  // namespace

void arena_tell_first_terms(Arena& arena, ArenaLock& lock) noexcept {
  if (arena.service == Arena::Service::kChunks && !arena.record_only) tell(arena, lock);
}

void arena_tell_terms(Arena& arena, ArenaLock& lock) noexcept {
  // Events and copies would end a capture.
  if (captures_are_open()) return;
  arena.terms_due = false;
  const std::uint64_t releases = arena.releases;
  if (arena.record_only || !tell(arena, lock) || arena.releases != releases) return;
  // Nothing is better than a plan without swaps that is within the limit.
  const std::uint64_t limit = arena.chunks.limit();
  if (arena.plan == nullptr || arena.plan->swaps != 0 || (limit != 0 && arena.plan_needs > limit)) record_again(arena);
}

}  // namespace memopt::agent
