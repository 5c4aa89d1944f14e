#include "agent/memory/arena.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "agent/link/link.h"
#include "agent/memory/arena_state.h"
#include "agent/memory/pins.h"
#include "agent/memory/points.h"
#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/order/in_flight.h"
#include "agent/process/log.h"
#include "agent/process/options.h"
#include "agent/process/own_cost.h"
#include "agent/recording/device_times.h"
#include "agent/recording/recorder.h"
#include "shm/plan.h"

namespace memopt::agent {

std::uint64_t arena_range_begin = 0;
std::uint64_t arena_range_bytes = 0;
bool arena_on = false;

// Leaked on purpose; a forked child gets a new one.
constinit Arena* the_arena = nullptr;
constinit bool arena_refused = false;

namespace {

// Where a variable is called `arena`.
inline Arena* current() noexcept { return arena(); }

// What a thread remembers; trivial, so that no destructor runs at its end.
struct ThreadState {
  LaneState* lane;  // null: it has none (yet)
  bool known;       // has been given a lane, if there was one
};
constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec"))) = {};

// Which streams need no wait before they touch bytes with these former users.
std::uint64_t ready_streams(const Release& former) noexcept {
  if (former.everything()) return 0;
  if (former.count == 0) return kAllStreams;
  const auto slot = static_cast<StreamSlot>(former.uses[0].slot);
  if (former.count == 1 && slot != kOverflowSlot && slot < kReadySlots) return std::uint64_t{1} << slot;
  return 0;
}

// Starts service at the first allocation, when there is a context, and again in the next one when that is gone.
[[gnu::cold, gnu::noinline]] void start(Arena& arena, ArenaLock& lock, CUcontext context) noexcept {
  try {
    const Options& chosen = options();
    arena.synchronous = shm::wait_seconds(chosen.value(shm::OptionId::kSyncPlan)) != 0;
    arena.record_only = chosen.is_on(shm::OptionId::kRecord);
    // A context that was reset stays current, but is nothing that memory can be served in before it is retained again.
    CUdevice device = 0;
    if (driver().current_device(&device) != CUDA_SUCCESS) return;
    arena.context = context;
    arena.why.clear();
    arena.device = device;
    if (!chosen.is_on(shm::OptionId::kPlan) && !arena.record_only) {
      arena.service = Arena::Service::kNone;
      arena.why = "MEMOPT_PLAN=0: allocation is left to the driver";
      arena_limit(arena);
      __atomic_store_n(&arena_refused, true, __ATOMIC_RELAXED);
      return;
    }
    if (arena.record_only) {
      arena.service = Arena::Service::kDriver;
      arena.why = "MEMOPT_RECORD=1: everything is recorded, nothing is planned";
    } else if (arena.chunks.start(device, &arena.why)) {
      arena.service = Arena::Service::kChunks;
      arena_set_range(arena.chunks.range_begin(), arena.chunks.range_bytes());
    } else {
      arena.service = Arena::Service::kDriver;
      arena.slab.use_driver_block();
      log(LogLevel::kInfo, "{}: blocks come from cuMemAlloc", arena.why);
    }
    arena.streams.set_context(arena.context);
    arena.pools.start(device);
    arena_switch_on(true);
    arena_limit(arena);
    start_device_times(shm::sampling(chosen.value(shm::OptionId::kDeviceTimes)));
    LinkOptions link = link_options(chosen);
    // Under a limit blocks that stay had better be able to leave: nothing else is to lie in their chunks.
    if (arena.service == Arena::Service::kChunks && arena.chunks.limit() == 0) {
      link.chunk_bytes = static_cast<std::uint32_t>(arena.chunks.chunk_bytes());
    }
    // Before the link, so that the first records are planned for it.
    if (arena.chunks.limit() != 0 || arena.terms_told) {
      const std::uint64_t releases = arena.releases;
      arena_tell_first_terms(arena, lock);
      if (arena.releases != releases) return;
    }
    start_link(link);
    start_recording(arena.record_only);
    if (arena.restarted) arena.to_report = {shm::StateChange::kNewContext, 0};
  } catch (...) {
    arena.service = Arena::Service::kNone;
  }
}

// Is the thread's context the one whose memory this is?
[[gnu::always_inline]] inline bool context_is_ours(Arena& arena, ArenaLock& lock) noexcept {
  if (arena.service == Arena::Service::kNotStarted) [[unlikely]] {
    CUcontext context = nullptr;
    if (driver().current_context(&context) != CUDA_SUCCESS || context == nullptr) return false;
    start(arena, lock, context);
    if (arena.service == Arena::Service::kNotStarted) return false;
  }
  // Another context has streams of its own, and takes its memory with it when it goes: that is the driver's to serve.
  return is_current(driver(), arena.context);
}

// The state of the thread's lane, about the plans that are there now; null if it has none: asked again at the next
// malloc. A thread that is ending, whose lane another one has, disturbs that one's position: a deviation.
[[gnu::cold, gnu::noinline]] LaneState* refresh(Arena& arena, ThreadState& thread) noexcept {
  const std::uint32_t number = current_lane();
  if (number >= arena.lanes.size()) return nullptr;
  LaneState& lane = arena.lanes[number];
  thread.lane = &lane;
  if (lane.serial == arena.serial) return &lane;
  const auto place = [&](FollowedPlan* plan, LanePosition& at) {
    const std::uint64_t generation = plan != nullptr ? plan->generation : 0;
    // The armed plan has become the live one: the lane goes on where it is.
    if (at.plan == generation && generation != 0) return;
    if (&at == &lane.live && lane.next.plan == generation && generation != 0) {
      at = lane.next;
      // This malloc may have been counted.
      at.counted = LanePosition::kNotCounted;
      return;
    }
    at = {};
    at.plan = generation;
    if (plan != nullptr) at.lane = plan->find_lane(number);
  };
  place(arena.plan.get(), lane.live);
  place(arena.next != nullptr ? arena.next.get() : arena.declined.plan.get(), lane.next);
  lane.serial = arena.serial;
  return &lane;
}

// Makes `block` lie at the place; false if another block is there.
[[gnu::always_inline]] inline bool serve_planned(Arena& arena, Block& block, FollowedPlace& place) noexcept {
  Window& window = arena.slab.window();
  Block* in_the_way = nullptr;
  Span* const span = window.map.take(place.begin, place.end, &block, place.hint, &block.former, &in_the_way);
  if (span == nullptr) [[unlikely]]
    return false;
  place.hint = span;
  block.span = span;
  block.window = &window;
  block.base = window.base + place.begin;
  return true;
}

// The same for the plan that is not live: armed, or declined.
[[gnu::noinline]] void step_in_next(Arena& arena, ArenaLock& lock, ThreadState& thread, LanePosition& at,
                                    std::uint64_t bytes, std::uint64_t return_address) noexcept {
  // One that another lane's position tells is at a beginning of its own whichever round that is.
  if (!at.lane->gaps.empty()) [[unlikely]]
    find_round(at, point_cursor.since);
  // Not where one more comes between two iterations: the plan would be left at once.
  if (at.following && at.position == 0 && arena.phase == Arena::Phase::kArmed && is_next(at, bytes, return_address)) {
    arena_go_live(arena, lock, *at.lane);
    refresh(arena, thread);
  }
  // Also where it could not go live, for want of memory: it may at the next beginning.
  if (at.lane == nullptr) return;
  if (at.lane->clock != nullptr) [[unlikely]]
    find_round(at, point_cursor.since);
  const bool begins = at.following && at.position == 0 && at.lane->main;
  FollowedMalloc* expected = nullptr;
  const Step step = expect(at, bytes, return_address, &expected);
  if (arena.declined.plan != nullptr && step == Step::kLeaves) arena_left_declined(arena);
  // Behind it the plan may be another one.
  const bool is_in = step == Step::kRejoins ? at.lane->main && begins_behind(at) : step == Step::kFollows && begins;
  if (arena.declined.plan != nullptr && is_in) arena_keeps_to_declined(arena);
}

// Where the thread is in the plans, one malloc further. Null: this malloc is not planned.
[[gnu::always_inline]] inline FollowedMalloc* next_malloc(Arena& arena, ArenaLock& lock, ThreadState& thread,
                                                          std::uint64_t bytes, std::uint64_t return_address) noexcept {
  LaneState* lane = thread.lane;
  if (lane == nullptr || lane->serial != arena.serial) [[unlikely]] {
    lane = refresh(arena, thread);
    if (lane == nullptr) return nullptr;
  }
  if (lane->next.lane != nullptr) [[unlikely]]
    step_in_next(arena, lock, thread, lane->next, bytes, return_address);
  if (lane->live.lane != nullptr && lane->live.lane->is_told) [[unlikely]]
    find_round(lane->live, point_cursor.since);
  const auto begins_now = [&] {
    return lane->live.following && lane->live.position == 0 && is_next(lane->live, bytes, return_address);
  };
  if (arena.scans.due && begins_now()) [[unlikely]] {
    arena.scans.due = false;
    arena_read_scans(arena, lock);
    lane = refresh(arena, thread);
    if (lane == nullptr) return nullptr;
  }
  const bool due = arena.run_watch.due || arena.refill_due || arena.pace_watch.due;
  if (due && begins_now()) [[unlikely]] {
    // In the middle of an iteration everything would leave that it uses; behind the last one of a loop, what comes
    // next.
    if (lane->live.lane->first && !arena_leave_slow_plan(arena)) arena_complete_slab(arena, lock);
    lane = refresh(arena, thread);
    if (lane == nullptr) return nullptr;
  }
  // Also where another malloc has come than the first one of the plan.
  if (arena.gain_watch.due && lane->live.following && lane->live.position == 0 && lane->live.lane->first) [[unlikely]] {
    arena_leave_vain_plan(arena, lock);
    lane = refresh(arena, thread);
    if (lane == nullptr) return nullptr;
  }
  LanePosition& at = lane->live;
  if (at.lane == nullptr) return nullptr;
  FollowedMalloc* expected = nullptr;
  bool begins = at.following && at.position == 0 && at.lane->main;
  const Step step = expect(at, bytes, return_address, &expected);
  if (step != Step::kFollows) [[unlikely]] {
    if (!arena_off_plan(arena, lock, *lane, step, &begins)) return nullptr;
  }
  if (begins && expected != nullptr) arena_at_boundary(arena, *at.lane);
  if (expected != nullptr && !arena.plan->steps.empty()) [[unlikely]]
    arena_begin_points(arena, *lane, *expected);
  return expected;
}

// The first of its other places that the block can have; null if there is none.
[[gnu::cold, gnu::noinline]] FollowedPlace* serve_another(Arena& arena, Block& block, FollowedMalloc& malloc) noexcept {
  for (std::uint32_t left = malloc.count - 1; left != 0; --left) {
    FollowedPlace& place = *malloc.next_place();
    if (serve_planned(arena, block, place)) return &place;
  }
  return nullptr;
}

// The block's place, or the next free one of those that it may have; false if there is none.
[[gnu::always_inline]] inline bool serve_planned(Arena& arena, Block& block, FollowedMalloc& malloc) noexcept {
  FollowedPlace* place = malloc.next_place();
  if (!serve_planned(arena, block, *place)) [[unlikely]] {
    place = serve_another(arena, block, malloc);
    if (place == nullptr) return false;
  }
  if (malloc.swapped != nullptr) [[unlikely]]
    arena_enter_window(arena, block, *malloc.swapped, *place);
  return true;
}

// What a stream-ordered call says beside the block.
struct StreamOrder {
  StreamName stream;
  CUmemoryPool pool;
};

// The block's place in the order of its stream: behind the former users of its bytes, before whatever uses it.
void order_allocation(Arena& arena, ArenaLock& lock, Block& block, StreamName stream) noexcept {
  Operation operation;
  operation.use = arena.streams.begin(stream);
  if (block.former.everything()) arena.streams.cut();
  arena.streams.add_needs(static_cast<StreamSlot>(operation.use.slot), block.former, &operation.needs);
  // Before the lock is given back: pages in which it lies may come back meanwhile, and then it is not.
  block.ready = kAllStreams;
  block.uses.add(operation.use);
  order_operation(lock, operation);
  queued();
  arena.streams.order_by_legacy(lock, operation.use);
}

void insert(Arena& arena, Block* block) noexcept {
  arena.blocks.insert(block);
  arena.live_bytes += block->bytes;
  arena.peak_bytes = std::max(arena.peak_bytes, arena.live_bytes);
}

// What is recorded of an allocation, once the lock is free.
struct Made {
  std::uint64_t number = 0;
  std::uint64_t base = 0;
  std::uint64_t generation = 0;
  std::uint64_t slab = 0;
  shm::StateChange change{};
  bool stays = false;
};

Made made(Arena& arena, const Block& block) noexcept {
  const StateReport report = std::exchange(arena.to_report, StateReport{});
  return {block.number, block.base, report.generation, arena.slab.window().base, report.change, block.stays};
}

// The thread that is given the block knows it only after this returns, so that no use of it is recorded before.
void record(Arena& arena, const Made& made, std::size_t bytes, void* return_address, std::uint64_t stream) noexcept {
  const int kept_errno = errno;
  if (made.change != shm::StateChange{}) record_state(made.change, {made.generation, made.slab});
  record_malloc({made.number, bytes, 0, reinterpret_cast<std::uint64_t>(return_address), stream, made.base},
                made.stays ? shm::kStays : 0);
  std::vector<std::uint64_t> escaped;
  {
    ArenaLock lock;
    arena_look_for_plan(arena);
    escaped.swap(arena.escaped);
  }
  for (const std::uint64_t number : escaped) record_simple(shm::RecordKind::kEscape, shm::EscapeBody{number});
  errno = kept_errno;
}

// There is no host memory to list it: as if it had not been served.
[[gnu::cold]] Served refuse_late(Arena& arena, Block* block) noexcept {
  if (block->window != nullptr && block->window->kind == Window::Kind::kSlab) {
    block->window->map.give_back(block->span, block->former);
  } else if (own_window(*block) != nullptr) {
    arena_leave_window(arena, *block, block->former);
  } else if (block->window != nullptr) {
    arena.bootstrap.take_back(*block, block->former);
  } else {
    return {true, CUDA_ERROR_OUT_OF_MEMORY};
  }
  if (block->pool != nullptr) arena.pools.freed(block->pool, block->bytes);
  arena.blocks.drop(block);
  return {};
}

// `order` null: a plain allocation.
[[gnu::always_inline]] inline Served allocate(CUdeviceptr* address, std::size_t bytes, void* return_address,
                                              const StreamOrder* order) noexcept {
  if (address == nullptr || bytes == 0) return {};
  if (__atomic_load_n(&arena_refused, __ATOMIC_RELAXED)) [[unlikely]]
    return {};
  const bool stays = is_to_stay(bytes, return_address);
  const CostProbe probe;
  ThreadState& thread = t_state;
  if (make_arena() == nullptr) [[unlikely]]
    return {};
  Arena& arena = *current();
  // A thread that begins while nothing is recorded has a place in the plan too: that of one before it, perhaps.
  if (!thread.known) [[unlikely]] {
    thread.known = true;
    claim_lane();
  }
  Made made_block;
  {
    ArenaLock lock;
    if (!context_is_ours(arena, lock)) [[unlikely]]
      return {};
    if (arena.service == Arena::Service::kNone || arena.streams.capturing()) [[unlikely]]
      return {};
    if (arena.limit_change.pending) [[unlikely]] {
      const std::uint64_t releases = arena.releases;
      arena_follow_limit(arena, lock);
      // Its context is gone.
      if (arena.releases != releases) return {};
    }
    if (point_cursor.next != PointCursor::kNever) [[unlikely]] {
      const std::uint64_t releases = arena.releases;
      arena_finish_points(arena, lock, bytes, reinterpret_cast<std::uint64_t>(return_address));
      if (arena.releases != releases) return {};
    }
    CUmemoryPool pool = nullptr;
    if (order != nullptr) {
      // Not ours to refuse: the driver does it.
      if (arena.known_streams.check(order->stream.handle) != CUDA_SUCCESS) return {};
      pool = order->pool != nullptr ? order->pool : arena.pools.current();
      if (!arena.pools.serves(pool)) return {};
    }
    if (!arena.blocks.reserve_one()) [[unlikely]]
      return {};
    Block* const block = arena.blocks.make();
    block->bytes = bytes;
    block->stays = stays;
    ++arena.mallocs;
    const std::uint64_t releases_before = arena.releases;
    FollowedMalloc* const malloc =
        next_malloc(arena, lock, thread, bytes, reinterpret_cast<std::uint64_t>(return_address));
    // It may have waited, and the context be gone, with all that was made in it.
    if (arena.releases != releases_before) [[unlikely]]
      return {};
    const bool placed = malloc != nullptr && malloc->count != 0;
    bool planned = placed && serve_planned(arena, *block, *malloc);
    if (placed && !planned) [[unlikely]]
      planned = arena_refill_places(arena, lock, *malloc) && serve_planned(arena, *block, *malloc);
    if (arena.releases != releases_before) [[unlikely]]
      return {};
    if (!planned) [[unlikely]] {
      if (arena.plan != nullptr) ++arena.displaced;
      if (malloc != nullptr && !placed) ++arena.unplaced;
      CUresult result = CUDA_ERROR_NOT_SUPPORTED;
      // Where the driver makes the blocks, it makes this one by its own stream-ordered call (arena_note_async).
      const bool by_driver = order != nullptr && arena.service == Arena::Service::kDriver;
      // A thread that follows finds its other places free only if this block does not lie in one of them.
      if (!by_driver) {
        result = arena_serve_dynamically(arena, lock, *block, !(thread.lane != nullptr && thread.lane->live.following));
      }
      if (result != CUDA_SUCCESS) {
        arena.blocks.drop(block);
        // The driver's own answer then, out of memory included.
        if (!by_driver && result != CUDA_ERROR_OUT_OF_MEMORY) {
          log(LogLevel::kWarn, "a block of {} bytes could not be served (error {}): the driver is asked", bytes,
              static_cast<int>(result));
        }
        return {};
      }
    }
    if (order != nullptr) {
      const std::uint64_t releases = arena.releases;
      order_allocation(arena, lock, *block, order->stream);
      // Its memory went with the context meanwhile.
      if (arena.releases != releases) {
        arena.blocks.drop(block);
        return {};
      }
      block->pool = pool;
      arena.pools.allocated(pool, bytes);
    } else {
      block->ready = ready_streams(block->former);
      if (block->former.everything()) arena.streams.cut();
      block->ready_at = arena.streams.reuses();
    }
    if (arena.streams.wants_events()) [[unlikely]]
      arena.streams.record_wanted(lock);
    // Other threads may have inserted theirs while the lock was given back.
    if (!arena.blocks.reserve_one()) [[unlikely]]
      return refuse_late(arena, block);
    insert(arena, block);
    *address = block->base;
    if (point_cursor.next == 0) [[unlikely]]
      arena_look_at_points(arena, lock);
    if (arena.wanted_pieces != 0) [[unlikely]]
      arena_make_pieces(arena, lock);
    if (arena.terms_due) [[unlikely]]
      arena_tell_terms(arena, lock);
    if (!recording()) [[likely]]
      return {true, CUDA_SUCCESS};
    made_block = made(arena, *block);
  }
  record(arena, made_block, bytes, return_address, order != nullptr ? stream_number(order->stream) : 0);
  return {true, CUDA_SUCCESS};
}

}  // namespace

void arena_set_range(std::uint64_t begin, std::uint64_t bytes) noexcept {
  // In this order, which arena_may_own relies on.
  __atomic_store_n(&arena_range_bytes, bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&arena_range_begin, begin, __ATOMIC_RELEASE);
}

void arena_switch_on(bool on) noexcept { __atomic_store_n(&arena_on, on, __ATOMIC_RELEASE); }

Arena* make_arena() noexcept {
  if (current() == nullptr) [[unlikely]] {
    ArenaLock lock;
    if (current() == nullptr) __atomic_store_n(&the_arena, new (std::nothrow) Arena(driver()), __ATOMIC_RELEASE);
  }
  return current();
}

void arena_widen_range(std::uint64_t base, std::uint64_t bytes) noexcept {
  // The hull of all blocks so far, one byte more for pointers to the end.
  const std::uint64_t begin = arena_range_bytes == 0 ? base : std::min(arena_range_begin, base);
  const std::uint64_t end = std::max(arena_range_begin + arena_range_bytes, base + bytes + 1);
  arena_set_range(begin, end - begin);
}

Served arena_allocate(CUdeviceptr* address, std::size_t bytes, void* return_address) noexcept {
  return allocate(address, bytes, return_address, nullptr);
}

Served arena_allocate_async(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, StreamName stream,
                            void* return_address) noexcept {
  const StreamOrder order{stream, pool};
  return allocate(address, bytes, return_address, &order);
}

CUresult arena_free_refusal() noexcept { return current_context_refusal(driver()); }

bool arena_note_async(CUdeviceptr address, std::size_t bytes, StreamName stream, void* return_address) noexcept {
  if (current() == nullptr) return false;
  Arena& arena = *current();
  Made made_block;
  {
    ArenaLock lock;
    if (arena.service != Arena::Service::kDriver || arena.streams.capturing() || !context_is_ours(arena, lock) ||
        !arena.blocks.reserve_one()) {
      return false;
    }
    Block* const block = arena.blocks.make();
    block->bytes = bytes;
    block->base = address;
    block->window = nullptr;
    if (!arena_note_driver_block(arena, *block)) {
      arena.blocks.drop(block);
      return false;
    }
    block->ready = kAllStreams;
    insert(arena, block);
    if (!recording()) return true;
    made_block = made(arena, *block);
  }
  record(arena, made_block, bytes, return_address, stream_number(stream));
  return true;
}

void forget_arena_after_fork() noexcept {
  forget_pins_after_fork();
  forget_scans_after_fork();
  // The parent's device memory is nothing that a child can use, and its lock may be held by a thread that is not here.
  arena_lock_word = {};
  arena_switch_on(false);
  arena_refused = false;
  __atomic_store_n(&the_arena, nullptr, __ATOMIC_RELAXED);
  arena_set_range(0, 0);
  t_state = {};
  arena_stop_points();
}

}  // namespace memopt::agent
