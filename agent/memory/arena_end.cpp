// The end of what is served: the context has failed, or is gone, and the next one begins anew.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/arena_lock.h"
#include "agent/order/current_context.h"
#include "agent/recording/device_times.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// Where a variable is called `arena`.
inline Arena* current() noexcept { return arena(); }

bool serves(const Arena& arena, CUcontext context) noexcept {
  return arena.context == context &&
         (arena.service == Arena::Service::kChunks || arena.service == Arena::Service::kDriver);
}

// The blocks of a context that goes are freed with it: a recording says so.
[[gnu::cold]] void record_frees_of(CUcontext context) noexcept {
  std::vector<std::uint64_t> numbers;
  {
    ArenaLock lock;
    Arena& arena = *current();
    if (!serves(arena, context)) return;
    try {
      numbers.reserve(arena.blocks.size());
    } catch (const std::bad_alloc&) {
      return;  // its readers do without
    }
    arena.blocks.for_each([&](Block& block) { numbers.push_back(block.number); });
  }
  std::sort(numbers.begin(), numbers.end());
  const int kept_errno = errno;
  for (const std::uint64_t number : numbers) record_free({number, 0}, 0);
  errno = kept_errno;
}

// The context is gone: everything goes back to the driver, and the arena is made anew where it is, so that nothing is
// left of what was. Numbers that must not come twice go on, and so do sums for status.
[[gnu::cold]] void begin_anew(Arena& arena) noexcept {
  const std::uint64_t last_block = arena.blocks.last_number();
  ArenaSums sums = arena;
  ++sums.serial;
  ++sums.releases;
  sums.restarted = true;
  sums.footprint_peak = arena_footprint_peak(arena);
  if (arena.plan != nullptr || sums.footprint_at_end == 0) sums.footprint_at_end = arena_footprint(arena);
  arena.streams.forget();
  arena_release_all(arena);
  arena.chunks.end();
  std::destroy_at(&arena);
  std::construct_at(&arena, driver());
  arena.blocks.number_behind(last_block);
  static_cast<ArenaSums&>(arena) = sums;
  try {
    arena.why = "the context in which memory was served is gone; the next one that allocates is served";
  } catch (...) {
  }
}

// A context that has answered so can only be destroyed.
bool is_fatal(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

}  // namespace

void arena_failed(Arena& arena, CUresult result) noexcept {
  if (!is_fatal(result)) return;
  arena.failure = result;
  __atomic_store_n(&arena_refused, true, __ATOMIC_RELAXED);
}

void note_failure(CUresult result) noexcept {
  if (!is_fatal(result) || !arena_is_on()) return;
  CUcontext context = nullptr;
  if (driver().current_context(&context) != CUDA_SUCCESS) return;
  ArenaLock lock;
  // Another context's error is none of ours.
  if (context == current()->context) arena_failed(*current(), result);
}

void note_context_destroyed(CUcontext context) noexcept {
  if (current() == nullptr || context == nullptr) return;
  note_context_change();
  if (recording()) record_frees_of(context);
  ArenaLock lock;
  Arena& arena = *current();
  if (!serves(arena, context)) return;
  // The driver takes the blocks of a context with it, and its work is over. Ours outlive it as chunks, so they are
  // given back here.
  arena_switch_on(false);
  arena_set_range(0, 0);
  __atomic_store_n(&arena_refused, false, __ATOMIC_RELAXED);
  stop_recording();
  forget_device_times();
  begin_anew(arena);
}

}  // namespace memopt::agent
