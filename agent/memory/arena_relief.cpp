// Memory that no block needs goes to whatever needs it: a call of the driver's that found the device full (arena.h).
//
// The driver is waited for without the lock, since a host function in a stream may wait for a thread that wants it: a
// snapshot of how far the streams have got is taken under the lock, the wait is in the context whose memory this is,
// and what was over at the snapshot is given back under the lock again.
#include <algorithm>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/process/log.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// Iterations until the slab is made whole again: so many after the first time, twice as many after each further one.
constexpr std::uint32_t kFirstPause = 4;
constexpr std::uint32_t kLongestPause = 1024;
// Chunks that are made anew at one boundary.
constexpr std::size_t kRefillSlice = 8;

// The arena's context is the thread's current one in this scope.
class InContext {
 public:
  explicit InContext(CUcontext context) noexcept {
    CUcontext current = nullptr;
    if (driver().current_context(&current) == CUDA_SUCCESS && current == context) {
      entered_ = true;
    } else {
      entered_ = pushed_ = driver().push_context(context) == CUDA_SUCCESS;
    }
  }
  ~InContext() {
    CUcontext popped = nullptr;
    if (pushed_) driver().pop_context(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

  bool entered() const { return entered_; }

 private:
  bool entered_ = false;
  bool pushed_ = false;
};

std::uint64_t idle_bytes(const Arena& arena, Relief relief) noexcept {
  const std::uint64_t cached = arena.service == Arena::Service::kChunks ? arena.bootstrap.idle_bytes() : 0;
  return cached + (relief == Relief::kAll ? arena.slab.idle_bytes() : 0);
}

std::uint64_t held_bytes(const Arena& arena) noexcept {
  return arena.service == Arena::Service::kChunks ? arena.chunks.counts().held_bytes : arena.slab.live_bytes();
}

void pause(Arena& arena) noexcept {
  arena.relief_pause = std::clamp(arena.relief_pause * 2, kFirstPause, kLongestPause);
  arena.wait_for_memory = arena.relief_pause;
}

// The plan has no slab any more: it is armed, and goes live again when there is memory.
void leave_plan(Arena& arena) noexcept {
  ++arena.deviations;
  arena.deviating = true;
  arena.calm_iterations = 0;
  if (arena.next == nullptr) arena.next = std::move(arena.plan);
  arena.plan.reset();
  arena.phase = Arena::Phase::kArmed;
  ++arena.serial;
  pause(arena);
  if (!recording()) start_recording(arena.record_only);
  arena.to_report = shm::StateChange::kRestarted;
}

// With the lock held: what is idle and over. Returns a block of the driver's that is to be freed without the lock.
CUdeviceptr give_back(Arena& arena, Relief relief) noexcept {
  if (relief == Relief::kAll && arena.slab.is_driver_block()) {
    const CUdeviceptr block = arena.slab.give_up_driver_block();
    if (block != 0 && arena.plan != nullptr) leave_plan(arena);
    return block;
  }
  if (arena.service != Arena::Service::kChunks) return 0;
  if (relief == Relief::kAll) {
    // In preparation, it is mapped and nothing else. What is missing is made when the plan goes live.
    arena.slab.give_up_unfinished();
    const std::size_t gone = arena.slab.gone_chunks();
    arena.slab.give_up_idle();
    if (arena.slab.gone_chunks() != gone) {
      ++arena.deviations;
      arena.deviating = true;
      arena.calm_iterations = 0;
      pause(arena);
      log(LogLevel::kInfo, "memory is short: {} idle chunks of the slab go back to the driver",
          arena.slab.gone_chunks() - gone);
    }
  }
  arena.bootstrap.give_up_idle();
  return 0;
}

// Gives back what is over; returns by how many bytes less is held.
std::uint64_t give_back_now(Arena& arena, Relief relief, const HostWait* waited, HostWait* next_wait,
                            bool* may_wait) noexcept {
  CUdeviceptr block = 0;
  std::uint64_t given = 0;
  {
    ArenaLock lock;
    // The context may be gone meanwhile, with all that was held.
    if (arena.service != Arena::Service::kChunks && arena.service != Arena::Service::kDriver) return 0;
    if (waited != nullptr) arena.streams.completed(*waited);
    const std::uint64_t before = held_bytes(arena);
    block = give_back(arena, relief);
    given = before - std::min(before, held_bytes(arena));
    // While a stream captures, waiting for its context is an error that ends the capture.
    *may_wait = !arena.streams.capturing() && idle_bytes(arena, relief) != 0;
    if (*may_wait) *next_wait = arena.streams.begin_wait_for_context();
  }
  // It waits for all work.
  if (block != 0) driver().mem_free(block);
  return given;
}

}  // namespace

bool arena_relieve(Relief relief, std::size_t wanted) noexcept {
  if (arena() == nullptr) return false;
  Arena& arena = *memopt::agent::arena();
  std::uint64_t idle = 0;
  CUcontext context = nullptr;
  CUdevice device = 0;
  {
    ArenaLock lock;
    if (arena.service != Arena::Service::kChunks && arena.service != Arena::Service::kDriver) return false;
    idle = idle_bytes(arena, relief);
    context = arena.context;
    device = arena.device;
  }
  // Without a current context, the call is to make one.
  CUdevice current = 0;
  if (idle == 0 || (driver().current_device(&current) == CUDA_SUCCESS && current != device)) return false;
  const InContext in_context(context);
  if (!in_context.entered()) return false;
  // Programs try how much they can have: nothing is given up for what can't be had.
  std::size_t free = 0;
  std::size_t total = 0;
  if (driver().mem_get_info(&free, &total) != CUDA_SUCCESS) return false;
  if (wanted > free && wanted - free > idle) return false;

  HostWait wait;
  bool may_wait = false;
  std::uint64_t given = give_back_now(arena, relief, nullptr, &wait, &may_wait);
  const bool enough = wanted != 0 && given != 0 && free + given >= wanted;
  if (enough || !may_wait || driver().synchronize_context() != CUDA_SUCCESS) return given != 0;
  given += give_back_now(arena, relief, &wait, &wait, &may_wait);
  return given != 0;
}

std::uint64_t arena_reserve_bytes() noexcept {
  if (arena() == nullptr) return 0;
  CUdevice current = 0;
  if (driver().current_device(&current) != CUDA_SUCCESS) return 0;
  ArenaLock lock;
  const Arena& arena = *memopt::agent::arena();
  if (arena.service != Arena::Service::kChunks && arena.service != Arena::Service::kDriver) return 0;
  return current == arena.device ? idle_bytes(arena, Relief::kAll) : 0;
}

void arena_look_for_memory(Arena& arena) noexcept {
  if (arena.wait_for_memory != 0 && --arena.wait_for_memory != 0) return;
  // What is served beside the slab for want of it.
  arena.bootstrap.trim(~std::size_t{0});
  if (!arena.chunks.could_create(arena.slab.gone_chunks())) {
    pause(arena);
    return;
  }
  const std::size_t missing = arena.slab.gone_chunks();
  if (arena.slab.refill(arena.synchronous ? ~std::size_t{0} : kRefillSlice)) {
    // What was served beside it meanwhile goes back as after a switch.
    arena.calm_iterations = 0;
    arena.housekeeping = true;
  } else if (arena.slab.gone_chunks() == missing) {
    pause(arena);
  }
}

bool arena_postpone(Arena& arena) noexcept {
  const FollowedPlan* const wanted = arena.next.get();
  try {
    if (!arena.slab.want(wanted->slab_bytes, [wanted](std::uint64_t block) { return wanted->is_persistent(block); })) {
      return false;
    }
    arena.abandoned = "there is no memory for the plan: it is tried again";
  } catch (...) {
    return false;
  }
  arena.phase = Arena::Phase::kArmed;
  pause(arena);
  return true;
}

}  // namespace memopt::agent
