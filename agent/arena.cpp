#include "agent/arena.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "agent/arena_state.h"
#include "agent/link.h"
#include "agent/log.h"
#include "agent/options.h"
#include "agent/own_cost.h"
#include "agent/recorder.h"
#include "shm/plan.h"

namespace memopt::agent {

int arena_lock_word = 0;
std::uint64_t arena_range_begin = 0;
std::uint64_t arena_range_bytes = 0;

namespace {

constexpr std::uint64_t kAllStreams = ~std::uint64_t{0};

// Leaked on purpose; a forked child gets a new one.
constinit Arena* g_arena = nullptr;

// Acquire pairs with the release in arena_allocate: who sees the arena sees what it was made of.
inline Arena* current() noexcept { return __atomic_load_n(&g_arena, __ATOMIC_ACQUIRE); }

// Changes whenever a thread's current context may have changed.
constinit std::uint64_t g_context_changes = 1;

// What a thread remembers; trivial, so that no destructor runs at its end.
struct ThreadState {
  std::uint64_t context_changes;  // at which the context was found good; 0: never
  std::uint64_t serial;           // of the arena's plans that the rest is about
  LanePosition live;
  LanePosition next;
};
constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec"))) = {};

void set_range(std::uint64_t begin, std::uint64_t bytes) noexcept {
  __atomic_store_n(&arena_range_begin, begin, __ATOMIC_RELAXED);
  __atomic_store_n(&arena_range_bytes, bytes, __ATOMIC_RELAXED);
}

std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + shm::kPlanAlignment - 1) / shm::kPlanAlignment * shm::kPlanAlignment;
}

// Which streams need no wait before they touch bytes with these former users.
std::uint64_t ready_streams(const Release& former) noexcept {
  if (former.everything || former.unordered) return 0;
  if (former.count == 0) return kAllStreams;
  if (former.count == 1 && former.uses[0].slot != kOverflowSlot) return std::uint64_t{1} << former.uses[0].slot;
  return 0;
}

// Starts service at the first allocation, when there is a context.
[[gnu::cold, gnu::noinline]] void start(Arena& arena) noexcept {
  try {
    const Options& chosen = options();
    arena.synchronous = chosen.is_on(shm::OptionId::kSyncPlan);
    arena.record_only = chosen.is_on(shm::OptionId::kRecord);
    int devices = 0;
    arena.one_device = driver().device_count(&devices) == CUDA_SUCCESS && devices <= 1;
    driver().current_context(&arena.context);
    driver().current_device(&arena.device);
    if (!chosen.is_on(shm::OptionId::kPlan) && !arena.record_only) {
      arena.service = Arena::Service::kNone;
      arena.why = "MEMOPT_PLAN=0: allocation is left to the driver";
      return;
    }
    if (arena.record_only) {
      arena.service = Arena::Service::kDriver;
      arena.why = "MEMOPT_RECORD=1: everything is recorded, nothing is planned";
    } else if (arena.chunks.start(arena.device, &arena.why)) {
      arena.service = Arena::Service::kChunks;
      set_range(arena.chunks.range_begin(), arena.chunks.range_bytes());
    } else {
      arena.service = Arena::Service::kDriver;
      arena.slab.use_driver_block();
      log(LogLevel::kInfo, "{}: blocks come from cuMemAlloc", arena.why);
    }
    start_link(link_options(chosen));
    start_recording(arena.record_only);
  } catch (...) {
    arena.service = Arena::Service::kNone;
  }
}

// Is the thread's context the one whose memory this is? Asked of the driver only after something may have changed it.
bool context_is_ours(Arena& arena, ThreadState& thread) noexcept {
  const std::uint64_t changes = __atomic_load_n(&g_context_changes, __ATOMIC_ACQUIRE);
  if (thread.context_changes == changes) [[likely]]
    return true;
  CUcontext context = nullptr;
  if (driver().current_context(&context) != CUDA_SUCCESS || context == nullptr) return false;
  if (arena.service == Arena::Service::kNotStarted) start(arena);
  if (context != arena.context) {
    CUdevice device = -1;
    if (driver().current_device(&device) != CUDA_SUCCESS || device != arena.device) return false;
  }
  thread.context_changes = changes;
  return true;
}

// A number for a thread's place in the plans that are there now.
void refresh(Arena& arena, ThreadState& thread) noexcept {
  const std::uint32_t lane = current_lane();
  const auto place = [&](FollowedPlan* plan, LanePosition& at) {
    const std::uint64_t generation = plan != nullptr ? plan->generation : 0;
    // The armed plan has become the live one: the thread goes on where it is.
    if (at.plan == generation && generation != 0) return;
    if (&at == &thread.live && thread.next.plan == generation && generation != 0) {
      at = thread.next;
      return;
    }
    at = {};
    at.plan = generation;
    if (plan != nullptr && lane != kNoLane) at.lane = plan->find_lane(lane);
  };
  place(arena.plan.get(), thread.live);
  place(arena.next.get(), thread.next);
  thread.serial = arena.serial;
}

CUresult serve_by_driver(Arena& arena, Block& block) noexcept {
  CUdeviceptr address = 0;
  const CUresult result = driver().mem_alloc(&address, block.bytes);
  if (result != CUDA_SUCCESS) return result;
  try {
    arena.driver_blocks.emplace(address, &block);
  } catch (...) {
    driver().mem_free(address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  block.base = address;
  block.window = nullptr;
  arena_widen_range(block.base, block.bytes);
  arena.driver_bytes += block.bytes;
  arena.driver_peak = std::max(arena.driver_peak, arena.driver_bytes + arena.slab.window_bytes());
  return CUDA_SUCCESS;
}

// Not by the plan: from what is held, then, `from_slab`, from free bytes of the slab, then from new chunks.
CUresult serve_dynamically(Arena& arena, Block& block, bool from_slab) noexcept {
  if (arena.service == Arena::Service::kDriver) return serve_by_driver(arena, block);
  if (arena.slab.live_bytes() != 0) {
    if (arena.bootstrap.serve(block, true) == CUDA_SUCCESS) return CUDA_SUCCESS;
    OwnershipMap& map = arena.slab.window().map;
    std::uint64_t begin = 0;
    Block* in_the_way = nullptr;
    const std::uint64_t bytes = rounded(block.bytes);
    if (from_slab && map.find_free(bytes, &begin)) {
      Span* const span = map.take(begin, begin + bytes, &block, nullptr, &block.former, &in_the_way);
      if (span != nullptr) {
        block.span = span;
        block.window = &arena.slab.window();
        block.base = block.window->base + begin;
        return CUDA_SUCCESS;
      }
    }
    arena.housekeeping = true;
  }
  return arena.bootstrap.serve(block, false);
}

// Makes `block` lie at the place; false if somebody is there.
bool serve_planned(Arena& arena, Block& block, FollowedPlace& place) noexcept {
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

// Where the thread is in the plans, one malloc further. Null: this malloc is not planned.
FollowedPlace* next_place(Arena& arena, ThreadState& thread, std::uint64_t bytes,
                          std::uint64_t return_address) noexcept {
  if (thread.serial != arena.serial) [[unlikely]]
    refresh(arena, thread);
  FollowedMalloc* expected = nullptr;
  if (thread.next.lane != nullptr) [[unlikely]] {
    LanePosition& at = thread.next;
    if (at.following && at.position == 0 && arena.phase == Arena::Phase::kArmed) {
      arena_go_live(arena);
      refresh(arena, thread);
    } else {
      expect(at, bytes, return_address, &expected);
      expected = nullptr;
    }
  }
  LanePosition& at = thread.live;
  if (at.lane == nullptr) return nullptr;
  const bool begins = at.following && at.position == 0 && at.lane->main;
  const Step step = expect(at, bytes, return_address, &expected);
  if (step == Step::kLeaves) [[unlikely]]
    arena_deviated(arena, at);
  if (begins && step == Step::kFollows) arena_at_boundary(arena, *at.lane);
  return expected != nullptr && expected->count != 0 ? expected->next_place() : nullptr;
}

// A plan that has come is taken up; what is being built grows.
[[gnu::cold, gnu::noinline]] void look_for_plan(Arena& arena) noexcept {
  if (std::unique_ptr<const Plan> plan = take_plan()) arena_adopt(arena, *plan);
  if (arena.phase == Arena::Phase::kBuilding) arena_build(arena);
}

// With the lock held.
Block* find_inside(Arena& arena, std::uint64_t address, Block** ends_here) noexcept {
  *ends_here = nullptr;
  const auto ends = [&](Block* block) { return block != nullptr && block->base + block->bytes == address; };
  if (arena.service == Arena::Service::kDriver && !arena.slab.covers(address)) {
    auto after = arena.driver_blocks.upper_bound(address);
    Block* inside = nullptr;
    if (after != arena.driver_blocks.begin()) {
      --after;
      if (address < after->first + after->second->bytes) {
        inside = after->second;
        if (after->first == address && after != arena.driver_blocks.begin()) --after;
      }
      if (after->second != inside && ends(after->second)) *ends_here = after->second;
    }
    return inside;
  }
  Window* const window =
      arena.service == Arena::Service::kDriver ? &arena.slab.window() : arena.chunks.window_at(address);
  if (window == nullptr) return nullptr;
  const std::uint64_t offset = address - window->base;
  if (offset >= window->map.bytes()) {
    Span* const last = offset == window->map.bytes() && offset != 0 ? window->map.find(offset - 1, nullptr) : nullptr;
    if (last != nullptr && ends(last->owner)) *ends_here = last->owner;
    return nullptr;
  }
  Span* const span = window->map.find(offset, nullptr);
  if (span->begin == offset && span->previous != nullptr && ends(span->previous->owner)) {
    *ends_here = span->previous->owner;
  }
  return span->owner;
}

// Puts the operation behind the block's former owners, and makes it one of the block's uses.
inline void touch(Arena& arena, Block& block, StreamUse use) noexcept {
  if ((block.ready >> use.slot & 1) == 0) [[unlikely]] {
    arena.streams.wait(static_cast<StreamSlot>(use.slot), block.former);
    if (use.slot != kOverflowSlot) block.ready |= std::uint64_t{1} << use.slot;
  }
  block.uses.add(use);
  if (arena.streams.capturing() && arena.streams.is_capturing(static_cast<StreamSlot>(use.slot))) [[unlikely]]
    block.kept = true;
}

void drop_block(Arena& arena, Block* block) noexcept {
  arena.blocks.erase(block->base);
  arena.live_bytes -= block->bytes;
  arena.blocks.drop(block);
}

}  // namespace

Arena* arena() noexcept { return current(); }

void arena_widen_range(std::uint64_t base, std::uint64_t bytes) noexcept {
  // The hull of all blocks so far, one byte more for pointers to the end.
  const std::uint64_t begin = arena_range_bytes == 0 ? base : std::min(arena_range_begin, base);
  const std::uint64_t end = std::max(arena_range_begin + arena_range_bytes, base + bytes + 1);
  set_range(begin, end - begin);
}

std::uint64_t block_number(const Block& block) noexcept { return block.number; }

StreamSlot stream_slot(StreamName stream) noexcept {
  return current() != nullptr ? current()->streams.slot_of(stream) : kLegacySlot;
}

StreamUse begin_operation(StreamName stream) noexcept {
  return current() != nullptr ? current()->streams.begin(stream) : StreamUse{};
}

std::size_t find_blocks(std::uint64_t address, Block* found[2]) noexcept {
  if (current() == nullptr || !arena_may_own(address)) return 0;
  Arena& arena = *current();
  std::size_t count = 0;
  // The commonest word by far: the beginning of a block. Who ends there is seen from its span.
  if (Block* const block = arena.blocks.find(address)) [[likely]] {
    found[count++] = block;
    if (block->span != nullptr) {
      const Span* const before = block->span->previous;
      if (before != nullptr && before->owner != nullptr && before->owner->base + before->owner->bytes == address) {
        found[count++] = before->owner;
      }
      return count;
    }
    count = 0;
  }
  Block* ends_here = nullptr;
  if (Block* const block = find_inside(arena, address, &ends_here)) found[count++] = block;
  if (ends_here != nullptr) found[count++] = ends_here;
  return count;
}

void use_block(Block& block, StreamUse use) noexcept { touch(*current(), block, use); }

bool use_addresses(const std::uint64_t* addresses, std::size_t count, StreamUse use) noexcept {
  if (current() == nullptr) return false;
  Arena& arena = *current();
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t address = addresses[i];
    Block* const block = arena.blocks.find(address);
    if (block != nullptr && block->span != nullptr) [[likely]] {
      touch(arena, *block, use);
      const Span* const before = block->span->previous;
      if (before != nullptr && before->owner != nullptr && before->owner->base + before->owner->bytes == address)
          [[unlikely]] {
        touch(arena, *before->owner, use);
      }
      any = true;
      continue;
    }
    Block* found[2];
    const std::size_t blocks = find_blocks(address, found);
    for (std::size_t k = 0; k < blocks; ++k) touch(arena, *found[k], use);
    any = any || blocks != 0;
  }
  return any;
}

void use_everything(StreamUse use) noexcept {
  if (current() == nullptr) return;
  current()->blocks.for_each([&](Block& block) { use_block(block, use); });
}

void host_visible(StreamUse use) noexcept {
  if (current() != nullptr) current()->streams.host_visible(use);
}

void escaped(Block& block) noexcept {
  if (block.escaped) return;
  block.escaped = true;
  // From now on any stream may use it without our knowing, so its former users must be through.
  if (block.ready != kAllStreams && current()->streams.finish(block.former)) block.ready = kAllStreams;
}

Served arena_allocate(CUdeviceptr* address, std::size_t bytes, void* return_address) noexcept {
  if (address == nullptr || bytes == 0) return {};
  const CostProbe probe;
  ThreadState& thread = t_state;
  if (current() == nullptr) [[unlikely]] {
    ArenaLock lock;
    if (current() == nullptr) __atomic_store_n(&g_arena, new (std::nothrow) Arena(driver()), __ATOMIC_RELEASE);
    if (current() == nullptr) return {};
  }
  Arena& arena = *current();
  std::uint64_t number = 0;
  std::uint64_t base = 0;
  std::uint64_t generation = 0;
  shm::StateChange change{};
  {
    ArenaLock lock;
    if (!context_is_ours(arena, thread)) [[unlikely]]
      return {};
    if (arena.service == Arena::Service::kNone || arena.streams.capturing()) [[unlikely]]
      return {};
    if (!arena.blocks.reserve_one()) [[unlikely]]
      return {};
    Block* const block = arena.blocks.make();
    block->bytes = bytes;
    ++arena.mallocs;
    FollowedPlace* const place = next_place(arena, thread, bytes, reinterpret_cast<std::uint64_t>(return_address));
    if (place != nullptr && serve_planned(arena, *block, *place)) [[likely]] {
      block->planned = 1;
    } else {
      if (arena.plan != nullptr) ++arena.displaced;
      // A thread that follows finds its other places free only if this block does not lie in one of them.
      const CUresult result = serve_dynamically(arena, *block, !thread.live.following);
      if (result != CUDA_SUCCESS) {
        arena.blocks.drop(block);
        // The driver's own answer then, out of memory included.
        if (result != CUDA_ERROR_OUT_OF_MEMORY) {
          log(LogLevel::kWarn, "a block of {} bytes could not be served (error {}): the driver is asked", bytes,
              static_cast<int>(result));
        }
        return {};
      }
    }
    block->ready = ready_streams(block->former);
    arena.blocks.insert(block);
    arena.live_bytes += bytes;
    arena.peak_bytes = std::max(arena.peak_bytes, arena.live_bytes);
    *address = block->base;
    if (!recording()) [[likely]]
      return {true, CUDA_SUCCESS};
    if (arena.deviation_to_report) [[unlikely]] {
      change = arena.restarted ? shm::StateChange::kRestarted : shm::StateChange::kDeviated;
      generation = arena.plan != nullptr ? arena.plan->generation : 0;
      arena.deviation_to_report = false;
      arena.restarted = false;
    }
    number = block->number;
    base = block->base;
  }
  // The thread that is given the block knows it only after this returns, so that no use of it is recorded before.
  const int kept_errno = errno;
  if (generation != 0) record_state(change, {generation, 0});
  record_malloc({number, bytes, 0, reinterpret_cast<std::uint64_t>(return_address), 0, base}, 0);
  {
    ArenaLock lock;
    look_for_plan(arena);
  }
  errno = kept_errno;
  return {true, CUDA_SUCCESS};
}

Served arena_free(CUdeviceptr address) noexcept {
  if (current() == nullptr || !arena_may_own(address)) return {};
  const CostProbe probe;
  queued();  // whatever this thread announced before
  Arena& arena = *current();
  if (recording()) [[unlikely]] {
    std::uint64_t number = 0;
    {
      ArenaLock lock;
      const Block* const block = arena.blocks.find(address);
      if (block != nullptr) number = block->number;
    }
    const int kept_errno = errno;
    if (number != 0) record_free({number, 0}, 0);
    errno = kept_errno;
  }
  ArenaLock lock;
  Block* const block = arena.blocks.find(address);
  if (block == nullptr) [[unlikely]] {
    // In the range of our chunks nobody else has anything.
    if (arena.service != Arena::Service::kChunks) return {};
    return {true, CUDA_ERROR_INVALID_VALUE};
  }
  arena.streams.finish_host_visible();
  if (block->kept) [[unlikely]] {
    // A graph may use the bytes for as long as it lives: they stay as they are, without being a block.
    arena.kept_bytes += block->bytes;
    if (block->window == nullptr) arena.driver_blocks.erase(block->base);
    arena.blocks.erase(block->base);
    arena.live_bytes -= block->bytes;
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
  arena.streams.record_events(uses);
  if (block->window->kind == Window::Kind::kSlab) [[likely]] {
    block->window->map.give_back(block->span, uses);
  } else {
    arena.bootstrap.take_back(*block, uses);
  }
  drop_block(arena, block);
  return {true, CUDA_SUCCESS};
}

bool arena_relieve() noexcept {
  if (current() == nullptr) return false;
  ArenaLock lock;
  Arena& arena = *current();
  if (arena.service != Arena::Service::kChunks) return false;
  const std::uint64_t before = arena.chunks.counts().held_bytes;
  const HostWait all = arena.streams.begin_wait_for_context();
  if (driver().synchronize_context() != CUDA_SUCCESS) return false;
  arena.streams.completed(all);
  arena.bootstrap.trim(~std::size_t{0}, false);
  return arena.chunks.counts().held_bytes < before;
}

bool arena_block_at(std::uint64_t address, BlockExtent* extent) noexcept {
  if (!arena_may_own(address)) return false;
  ArenaLock lock;
  Block* found[2];
  const std::size_t count = find_blocks(address, found);
  for (std::size_t i = 0; i < count; ++i) {
    if (address - found[i]->base >= found[i]->bytes) continue;
    *extent = {found[i]->base, found[i]->bytes, found[i]->number};
    return true;
  }
  return false;
}

std::uint64_t arena_reserve_bytes() noexcept {
  if (current() == nullptr) return 0;
  ArenaLock lock;
  if (current()->service == Arena::Service::kNone) return 0;
  return current()->bootstrap.cached_bytes() + current()->slab.live_bytes() -
         current()->slab.window().map.owned_bytes();
}

void note_context_change() noexcept { __atomic_add_fetch(&g_context_changes, 1, __ATOMIC_RELEASE); }

void note_context_destroyed(CUcontext context) noexcept {
  if (current() == nullptr || context == nullptr) return;
  ArenaLock lock;
  Arena& arena = *current();
  note_context_change();
  if (arena.context != context || arena.service == Arena::Service::kNone) return;
  // The driver takes the blocks of a context with it, and its work is over. Ours outlive it as chunks, so they are
  // given back here.
  arena.streams.forget();
  set_range(0, 0);
  arena.why = "the context in which memory was served was destroyed";
  arena.footprint_at_end = arena_footprint(arena);
  arena.service = Arena::Service::kNone;
  stop_recording();
  arena_release_all(arena);
}

// Streams and events, as the hooks tell of them. ------------------------------------------------------------------

void note_stream_created(CUstream stream) noexcept {
  if (current() == nullptr) return;
  ArenaLock lock;
  current()->streams.created(stream);
}

void note_stream_destroyed(CUstream stream) noexcept {
  if (current() == nullptr) return;
  ArenaLock lock;
  current()->streams.destroyed(stream);
}

void note_capture_begins(CUstream stream) noexcept {
  if (current() == nullptr) return;
  ArenaLock lock;
  current()->streams.capture_begins(stream);
}

void note_capture_ended(CUstream stream) noexcept {
  if (current() == nullptr) return;
  ArenaLock lock;
  current()->streams.capture_ended(stream);
}

HostWait begin_host_wait_for_context() noexcept {
  if (current() == nullptr) return {};
  ArenaLock lock;
  return current()->streams.begin_wait_for_context();
}

HostWait begin_host_wait_for_stream(StreamName stream) noexcept {
  if (current() == nullptr) return {};
  ArenaLock lock;
  return current()->streams.begin_wait_for_stream(stream);
}

HostWait begin_host_wait_for_event(CUevent event) noexcept {
  if (current() == nullptr) return {};
  ArenaLock lock;
  return current()->streams.begin_wait_for_event(event);
}

void host_wait_done(const HostWait& wait) noexcept {
  if (current() == nullptr || wait.scope == 0) return;
  ArenaLock lock;
  current()->streams.completed(wait);
}

void note_event_recorded(CUevent event, StreamName stream) noexcept {
  if (current() == nullptr) return;
  ArenaLock lock;
  current()->streams.event_recorded(event, stream);
}

void note_event_destroyed(CUevent event) noexcept {
  if (current() == nullptr) return;
  ArenaLock lock;
  current()->streams.event_destroyed(event);
}

void note_event_waited(StreamName stream, CUevent event) noexcept {
  if (current() == nullptr) return;
  ArenaLock lock;
  current()->streams.event_waited(stream, event);
}

void forget_arena_after_fork() noexcept {
  // The parent's device memory is nothing that a child can use, and its lock may be held by a thread that is not here.
  arena_lock_word = 0;
  __atomic_store_n(&g_arena, nullptr, __ATOMIC_RELAXED);
  set_range(0, 0);
  t_state = {};
}

}  // namespace memopt::agent
