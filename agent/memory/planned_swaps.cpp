// A plan's swaps carried out: blocks leave for host memory and come back behind the operations that the plan names, by
// copies on two streams of ours, each behind what it needs by events. The host waits for nothing here.
//
// A block that leaves gives its bytes of the slab up to whoever takes them next, who is behind the copy; it comes back
// by taking them again, behind their last owner's use, and whatever touches it then is behind that copy. All of this is
// the ownership map's: where it says no (the bytes are another block's still), the block stays away, and is tried again
// at the next points; an operation that touches it before that brings it back at once, into its place if that is free,
// into chunks beside the slab otherwise.
#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/memory/copy_rates.h"
#include "agent/memory/page_runs.h"
#include "agent/memory/points.h"
#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/order/in_flight.h"
#include "agent/process/driver.h"
#include "agent/process/kept_errno.h"
#include "agent/process/log.h"
#include "shm/plan.h"

namespace memopt::agent {

namespace {

// A part of the block, and where it lies in host memory.
struct PartialCopy {
  std::uint64_t address;
  std::byte* bytes;
  std::size_t count;
};

// What lies side by side in host memory is one copy, of `most` bytes at most. May throw std::bad_alloc.
std::vector<PartialCopy> copies_of(const Block& block, const OwnWindow& window, std::uint64_t chunk_bytes,
                                   std::uint64_t most) {
  std::vector<PartialCopy> copies;
  std::uint64_t done = 0;
  for (const HostPiece* const piece : window.pieces) {
    if (done == block.bytes) break;
    if (piece == nullptr) {  // nothing is to come back
      done += chunk_bytes;
      continue;
    }
    const auto count = static_cast<std::size_t>(std::min(chunk_bytes, block.bytes - done));
    PartialCopy* const last = copies.empty() ? nullptr : &copies.back();
    const bool adjoins = last != nullptr && last->address + last->count == block.base + done;
    if (adjoins && last->bytes + last->count == piece->bytes && last->count + count <= most) {
      last->count += count;
    } else {
      copies.push_back({block.base + done, piece->bytes, count});
    }
    done += count;
  }
  return copies;
}

CopyRates rates_of(const Arena& arena) noexcept { return arena.copy_rates.value_or(CopyRates{}); }

// Queues the copies on the stream, with the lock given back. False: not all of them have been queued.
bool queue_copies(Arena& arena, ArenaLock& lock, const std::vector<PartialCopy>& copies, CUstream stream, bool out,
                  CUresult* result) noexcept {
  const CUcontext context = arena.context;
  *result = CUDA_SUCCESS;
  const Unlocked unlocked(lock);
  const BesideCaptures beside(driver());
  const CurrentContext current(driver(), context);
  for (const PartialCopy& copy : copies) {
    *result = out ? driver().copy_to_host_async(copy.bytes, copy.address, copy.count, stream)
                  : driver().copy_to_device_async(copy.address, copy.bytes, copy.count, stream);
    if (*result != CUDA_SUCCESS) return false;
  }
  return true;
}

// Whose the block is that stands for pages; null: it is the program's.
PageRun* run_of(Arena& arena, const Block& block) noexcept {
  return (block.number & kRunNumber) != 0 ? arena.bootstrap.region().run_at(block.base) : nullptr;
}

void move_pages(Arena& arena, const Block& block, Region::Residency to) noexcept {
  if (const PageRun* const run = run_of(arena, block)) arena.bootstrap.region().move_run(*run, to);
}

bool is_in_flight(Arena& arena, const Block& block) noexcept {
  return block.uses.everything() ? block.touched >= oldest_in_flight() : !arena.streams.is_queued(block.uses);
}

// It is to stay, for as long as it lives or for now.
bool must_stay(Arena& arena, const Block& block) noexcept {
  if (captures_are_open()) return true;
  const PageRun* const run = run_of(arena, block);
  if (run == nullptr) return is_pinned(block) || is_in_flight(arena, block);
  bool stays = false;
  arena.bootstrap.region().for_each_block(run->first, run->count, [&](const Block& one) {
    // One that is being made or freed is in no list.
    stays = stays || is_pinned(one) || is_in_flight(arena, one) || arena.blocks.find(one.base) != &one;
  });
  return stays;
}

void say_once(Arena& arena, const char* why) noexcept {
  if (arena.planned_swaps.told) return;
  arena.planned_swaps.told = true;
  log(LogLevel::kInfo, "a planned swap is left out: {}", why);
}

// What a copy of the block on our stream is to be behind, as far as it is not yet.
UseSet needs_of_copy(Arena& arena, StreamSlot slot, const Release& uses, const OwnWindow& window) noexcept {
  UseSet needs;
  arena.streams.add_needs(slot, uses, &needs);
  for (const HostPiece* const piece : window.pieces) {
    if (piece != nullptr) arena.streams.add_needs(slot, piece->former, &needs);
  }
  return needs;
}

Block* find(Arena& arena, const SwappedMalloc::Instance& instance) noexcept {
  if ((instance.number & kRunNumber) != 0) {
    PageRun* const run = arena.bootstrap.region().run_at(instance.base);
    return run != nullptr && run->owner.number == instance.number ? &run->owner : nullptr;
  }
  Block* const block = arena.blocks.find(instance.base);
  return block != nullptr && block->number == instance.number ? block : nullptr;
}

// What is known of a block when the lock has been given back meanwhile.
struct Marked {
  explicit Marked(const Block& one) noexcept : base(one.base), number(one.number) {}
  bool is(Arena& arena, const Block& block) const noexcept { return find(arena, {base, number}) == &block; }
  std::uint64_t base;
  std::uint64_t number;
};

// Puts a copy of it on our stream behind all that has used the block, or what lies in the pages, as far as it is not
// yet: one use after the other, as a release has room for three streams, and more are everything, which is to be cut
// first.
UseSet needs_of_uses(Arena& arena, StreamSlot slot, const Block& block, const OwnWindow& window) noexcept {
  UseSet needs = needs_of_copy(arena, slot, block.uses, window);
  arena.streams.add_needs(slot, block.former, &needs);
  if (const PageRun* const run = run_of(arena, block)) {
    const Region& region = arena.bootstrap.region();
    region.for_each_block(run->first, run->count, [&](const Block& one) {
      arena.streams.add_needs(slot, one.uses, &needs);
      arena.streams.add_needs(slot, one.former, &needs);
    });
    region.for_each_free_part(run->first, run->count,
                              [&](const Release& uses) { arena.streams.add_needs(slot, uses, &needs); });
  }
  return needs;
}

// More streams than a release names have used it, or what lies in the pages, behind that ticket.
bool uses_everything(Arena& arena, const Block& block, std::uint64_t behind, bool free_parts) noexcept {
  const auto does = [behind](const Block& one) {
    return (one.uses.everything() || one.former.everything()) && one.touched >= behind;
  };
  const PageRun* const run = run_of(arena, block);
  if (run == nullptr) return does(block);
  const Region& region = arena.bootstrap.region();
  bool found = block.former.everything();
  region.for_each_block(run->first, run->count, [&](const Block& one) { found = found || does(one); });
  if (!free_parts) return found;
  region.for_each_free_part(run->first, run->count, [&](const Release& uses) { found = found || uses.everything(); });
  return found;
}

// Our stream is put behind all that has used the block. Nothing is marked meanwhile: where there is no event for a use,
// this waits for it, and what it waits for may wait for a thread that needs the block. False: the block does not leave.
bool stand_behind_uses(Arena& arena, ArenaLock& lock, Block& block, const OwnWindow& window) noexcept {
  constexpr int kMostRounds = 4;
  const Marked marked(block);
  const std::uint64_t releases = arena.releases;
  std::uint64_t cut_at = 0;
  for (int i = 0; i < kMostRounds; ++i) {
    // What has been queued meanwhile is behind the last cut.
    if (uses_everything(arena, block, i == 0 ? 0 : cut_at + 1, i == 0)) {
      arena.streams.cut();
      cut_at = arena.tickets;
    }
    const UseSet needs = needs_of_uses(arena, kOutSlot, block, window);
    if (needs.empty()) return true;
    arena.streams.wait(lock, kOutSlot, needs);
    if (arena.releases != releases || !marked.is(arena, block)) return false;
    if (own_window(block) != &window || window.moving || block.away != 0 || must_stay(arena, block)) return false;
  }
  return false;
}

// The block leaves; one that lies beside the slab only `from_beside`, which is not planned. Gives the lock back.
void send_out(Arena& arena, ArenaLock& lock, Block& block, bool from_beside) noexcept {
  OwnWindow* const window = own_window(block);
  if (window == nullptr || window->moving || window->beside != from_beside || block.away != 0) return;
  PlannedSwaps& swaps = arena.planned_swaps;
  const CUstream stream = arena.streams.own_stream(kOutSlot);
  if (stream == nullptr || must_stay(arena, block)) {
    ++swaps.left_out;
    say_once(arena,
             stream == nullptr ? "the driver makes no stream" : "the block's address is stored, or it is in use");
    return;
  }
  if (!arena.slab.own_windows().take_pieces(*window, arena.host)) {
    // What leaves on demand may have them.
    ++swaps.left_out;
    log(LogLevel::kDebug, "block {} of {} bytes stays, in iteration {}: no host memory for it", block.number,
        block.bytes, arena.iterations);
    say_once(arena, "there is no host memory");
    arena.wanted_pieces = window->chunks.size();
    return;
  }
  const std::uint64_t releases = arena.releases;
  const bool behind = stand_behind_uses(arena, lock, block, *window);
  if (arena.releases != releases) return;
  std::vector<PartialCopy> copies;
  try {
    if (behind) copies = copies_of(block, *window, arena.chunks.chunk_bytes(), rates_of(arena).out_piece);
  } catch (const std::bad_alloc&) {
  }
  if (copies.empty()) {
    ++swaps.left_out;
    return;
  }
  // From here on other threads that touch the block wait until the copies are queued; what they add to its uses is done
  // when it is back.
  const Release former = block.former;
  const Release uses = block.uses;
  window->moving = true;
  move_pages(arena, block, Region::Residency::kLeaving);
  block.away = static_cast<std::uint32_t>(window->chunks.size());
  block.former = {};
  block.uses = {};
  block.ready = 0;
  CUresult result = CUDA_SUCCESS;
  const bool queued = queue_copies(arena, lock, copies, stream, true, &result);
  if (arena.releases != releases) return;
  const StreamUse copy = arena.streams.queued_on_own(kOutSlot);
  arena.streams.leave_event(lock, kOutSlot);
  if (arena.releases != releases) return;
  Release read;
  read.add(copy);
  for (HostPiece* const piece : window->pieces) piece->former = read;
  window->moving = false;
  if (!queued) {
    // What has been queued of it is, as a copy that brings a block, before all that uses it next, and what a free
    // leaves behind (with_copies).
    block.former = former;
    block.former.add(copy);
    if (block.former.everything()) arena.streams.cut();
    block.uses.add(uses);
    block.away = 0;
    move_pages(arena, block, Region::Residency::kHere);
    ++swaps.left_out;
    arena_failed(arena, result);
    return;
  }
  if (block.span != nullptr) arena.slab.window().map.give_back(block.span, read);
  block.span = nullptr;
  move_pages(arena, block, Region::Residency::kAway);
  window->last_uses = read;
  arena.swaps.out_bytes += block.bytes;
  if (from_beside) return;
  ++swaps.out;
  swaps.out_bytes += block.bytes;
}

// The block's bytes are brought back to where its window lies, by the copies; `former`: whose bytes these were last.
// False: it is away still.
bool carry_back(Arena& arena, ArenaLock& lock, Block& block, OwnWindow& window, Span* span,
                const Release& former) noexcept {
  const std::uint64_t releases = arena.releases;
  const CUstream stream = arena.streams.own_stream(kInSlot);
  std::vector<PartialCopy> copies;
  CUresult result = stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  try {
    copies = copies_of(block, window, arena.chunks.chunk_bytes(), rates_of(arena).in_piece);
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  bool queued = false;
  window.moving = true;
  move_pages(arena, block, Region::Residency::kComing);
  StreamUse copy;
  if (result == CUDA_SUCCESS) {
    // As a rule the stream is behind all of it already.
    arena.streams.wait(lock, kInSlot, needs_of_copy(arena, kInSlot, former, window));
    if (arena.releases != releases) return false;
    queued = queue_copies(arena, lock, copies, stream, false, &result);
    if (arena.releases != releases) return false;
    copy = arena.streams.queued_on_own(kInSlot);
    arena.streams.leave_event(lock, kInSlot);
    if (arena.releases != releases) return false;
  }
  window.moving = false;
  Release used;
  if (copy.position != 0) used.add(copy);
  if (!queued) {
    Release both = former;
    both.add(used);
    if (both.everything()) arena.streams.cut();
    if (span != nullptr) arena.slab.window().map.give_back(span, both);
    window.last_uses.add(used);
    move_pages(arena, block, Region::Residency::kAway);
    arena_failed(arena, result);
    return false;
  }
  for (HostPiece* const piece : window.pieces) {
    if (piece != nullptr) piece->former = used;
  }
  block.span = span;
  block.former = used;
  block.ready = 0;
  block.away = 0;
  if (const PageRun* const run = run_of(arena, block)) {
    arena.bootstrap.region().return_run(*run, copy);
    if (!run->swapped) {
      for (HostPiece*& piece : window.pieces) {
        if (piece != nullptr) arena.host.give_back(std::exchange(piece, nullptr), used);
      }
    }
  }
  arena.swaps.in_bytes += block.bytes;
  return true;
}

// Takes the block's bytes of the slab again. Null: they are another's.
Span* take_place(Arena& arena, Block& block, OwnWindow& window, Release* former) noexcept {
  if (window.taken != nullptr) {
    *former = window.taken_after;
    return std::exchange(window.taken, nullptr);
  }
  OwnWindows& windows = arena.slab.own_windows();
  if (!windows.is_mapped(window)) {
    // Of the slab's chunks below it one was given up, and is there again.
    const bool may = !window.beside && arena.streams.is_over(window.last_uses, true);
    if (!may || windows.map(window) != CUDA_SUCCESS) return nullptr;
  }
  Block* in_the_way = nullptr;
  const std::uint64_t end =
      window.place + (block.bytes + shm::kPlanAlignment - 1) / shm::kPlanAlignment * shm::kPlanAlignment;
  Span* const span = arena.slab.window().map.take(window.place, end, &block, nullptr, former, &in_the_way);
  if (span != nullptr && former->everything()) arena.streams.cut();
  return span;
}

// The block comes back to its place. False: that is another's, for now. Gives the lock back.
bool bring_in(Arena& arena, ArenaLock& lock, Block& block) noexcept {
  OwnWindow* const window = own_window(block);
  if (window == nullptr || window->moving || window->taken != nullptr || block.away == 0 || captures_are_open()) {
    return true;
  }
  Release former;
  Span* const span = take_place(arena, block, *window, &former);
  if (span == nullptr) return false;
  // As in stand_behind_uses: a thread that touches the block meanwhile has the place, and brings it back.
  const Marked marked(block);
  const std::uint64_t releases = arena.releases;
  window->taken = span;
  window->taken_after = former;
  arena.streams.wait(lock, kInSlot, needs_of_copy(arena, kInSlot, former, *window));
  if (arena.releases != releases || !marked.is(arena, block) || own_window(block) != window) return true;
  if (window->taken != span || window->moving) return true;
  former = window->taken_after;
  window->taken = nullptr;
  PlannedSwaps& swaps = arena.planned_swaps;
  const std::uint64_t bytes = block.bytes;
  if (!carry_back(arena, lock, block, *window, span, former)) return true;
  ++swaps.in;
  swaps.in_bytes += bytes;
  return true;
}

// The block has come back because it was touched. Where the plan has it away still it leaves again behind the
// operation, but for one that is touched again and again: copies are what there is too little time for.
void comes_back(Arena& arena, const Block& block, OwnWindow& window) noexcept {
  constexpr std::uint32_t kMostEarly = 1;
  PlannedSwaps& swaps = arena.planned_swaps;
  const bool is_late = std::any_of(swaps.late.begin(), swaps.late.end(),
                                   [&](const LateReturn& one) { return one.block.number == block.number; });
  if (arena.plan == nullptr || is_late || swaps.early.size() == swaps.early.capacity()) return;
  if (++window.early > kMostEarly) return;
  ++swaps.too_early;
  swaps.early.push_back({block.base, block.number});
  // Where this thread follows the plan; another's next point does, too.
  point_cursor.next = 0;
}

// A window for the malloc's next block at the place: one that is there and free, or another.
OwnWindow* window_for(Arena& arena, SwappedMalloc& swapped, const FollowedPlace& place) noexcept {
  OwnWindows& windows = arena.slab.own_windows();
  for (OwnWindow* const window : swapped.windows) {
    if (window->place == place.begin && window->block == nullptr && windows.is_mapped(*window)) return window;
  }
  // Off the beaten path: the chunks beneath have changed, or a block is away for longer than planned.
  for (OwnWindow* const window : swapped.windows) {
    if (window->place != place.begin || window->block != nullptr || window->beside) continue;
    if (arena.streams.is_over(window->last_uses, true) && windows.map(*window) == CUDA_SUCCESS) return window;
  }
  try {
    swapped.windows.reserve(swapped.windows.size() + 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  OwnWindow* const made = windows.open(place.begin, place.end - place.begin);
  if (made == nullptr) return nullptr;
  // Where the slab lacks a chunk, it is mapped when a block needs it.
  swapped.windows.push_back(made);
  if (!windows.is_mapped(*made)) {
    if (!arena.streams.is_over(made->last_uses, true) || windows.map(*made) != CUDA_SUCCESS) return nullptr;
  }
  return made;
}

// All that was done by the window's addresses is over: it can be mapped elsewhere. Gives the lock back, and waits; the
// window is moving then, and may be gone with its context.
CUresult finish_uses(Arena& arena, ArenaLock& lock, OwnWindow& window) noexcept {
  const std::uint64_t releases = arena.releases;
  window.moving = true;
  if (arena.streams.is_over(window.last_uses, true)) return CUDA_SUCCESS;
  const Release uses = window.last_uses;
  const CUresult result = arena.streams.finish(lock, uses);
  return arena.releases == releases ? result : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// The block's place is another's, or gone: its window is mapped onto chunks beside the slab. Gives the lock back, and
// waits.
CUresult give_chunks_beside(Arena& arena, ArenaLock& lock, OwnWindow& window) noexcept {
  const std::uint64_t releases = arena.releases;
  CUresult result = finish_uses(arena, lock, window);
  std::vector<Chunk*> chunks;
  if (result == CUDA_SUCCESS) result = arena_take_chunks(arena, lock, window.chunks.size(), &chunks);
  if (arena.releases != releases) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  window.moving = false;
  if (result != CUDA_SUCCESS) return result;
  result = arena.slab.own_windows().map_beside(window, chunks);
  if (result == CUDA_SUCCESS) {
    ++arena.planned_swaps.beside;
    return result;
  }
  for (Chunk* const chunk : chunks) arena.bootstrap.keep(chunk);
  return result;
}

// Some of the block's place is gone, or its window was mapped onto another chunk: it has the place again, if nobody
// else has. Gives the lock back, and waits: rather that than as many chunks beside the slab.
Span* make_place_again(Arena& arena, ArenaLock& lock, Block& block, OwnWindow& window, Release* former) noexcept {
  const std::uint64_t releases = arena.releases;
  const CUresult result = finish_uses(arena, lock, window);
  // Where that fails the place is tried for all the same.
  if (result == CUDA_SUCCESS) arena_make_place(arena, lock, window.place, block.bytes, true);
  if (arena.releases != releases) return nullptr;
  window.moving = false;
  return result == CUDA_SUCCESS ? take_place(arena, block, window, former) : nullptr;
}

}  // namespace

void arena_enter_window(Arena& arena, Block& block, SwappedMalloc& swapped, const FollowedPlace& place) noexcept {
  OwnWindow* const window = window_for(arena, swapped, place);
  // In the slab's own window it can't be swapped, and is served all the same.
  if (window == nullptr) return;
  window->block = &block;
  block.window = window;
  block.base = window->base;
  block.escaped = window->stays;
  swapped.last() = {block.base, block.number};
}

void arena_leave_window(Arena& arena, Block& block, const Release& uses) noexcept {
  OwnWindow* const window = own_window(block);
  window->block = nullptr;
  if (window->taken != nullptr) {
    arena.slab.window().map.give_back(std::exchange(window->taken, nullptr), window->taken_after);
  }
  if (block.away == 0) {
    window->last_uses = uses;
    if (block.span != nullptr) arena.slab.window().map.give_back(block.span, uses);
  }
  if (window->beside || !window->wanted) arena.housekeeping = true;
}

std::size_t arena_window_pieces(const Arena& arena, const FollowedPlan& plan) noexcept {
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  std::size_t pieces = 0;
  for (const FollowedLane& lane : plan.lanes) {
    for (const FollowedMalloc& malloc : lane.mallocs) {
      if (malloc.swapped == nullptr) continue;
      pieces += malloc.count * static_cast<std::size_t>((malloc.bytes + chunk_bytes - 1) / chunk_bytes);
    }
  }
  return pieces;
}

void arena_begin_swaps(Arena& arena) noexcept {
  FollowedPlan& plan = *arena.plan;
  arena.planned_swaps.late.clear();
  arena.planned_swaps.early.clear();
  arena.slab.own_windows().begin_plan();
  for (SwappedMalloc& swapped : plan.swapped) swapped = {};
  if (arena.slab.own_windows().size() != 0) arena.housekeeping = true;
  if (plan.swaps == 0 || arena.service != Arena::Service::kChunks) return;
  try {
    arena.planned_swaps.late.reserve(plan.swapped.size() + plan.pages.size());
    arena.planned_swaps.early.reserve(plan.swapped.size() + plan.pages.size());
  } catch (const std::bad_alloc&) {
    // Late ones come back when they are touched.
  }
  log(LogLevel::kInfo,
      "{} swaps an iteration of {:.3f} ms, to which they are expected to add {:.3f}; on demand it took {:.3f}",
      plan.swaps, static_cast<double>(plan.period_ns) / 1e6, static_cast<double>(plan.added_ns) / 1e6,
      static_cast<double>(plan.otherwise_ns) / 1e6);
  // All windows are there, and mapped, before the first block needs one, with the host memory that was kept back.
  arena.host.keep_back(0);
  for (FollowedLane& lane : plan.lanes) {
    for (FollowedMalloc& malloc : lane.mallocs) {
      for (std::uint32_t i = 0; malloc.swapped != nullptr && i < malloc.count; ++i) {
        OwnWindow* const window = window_for(arena, *malloc.swapped, malloc.places[i]);
        if (window != nullptr) arena.slab.own_windows().take_pieces(*window, arena.host);
      }
    }
  }
}

Block* arena_find_swapped(Arena& arena, const SwappedMalloc::Instance& instance) noexcept {
  return find(arena, instance);
}

bool arena_must_stay(Arena& arena, const Block& block) noexcept { return must_stay(arena, block); }

void arena_send_out(Arena& arena, ArenaLock& lock, Block& block, bool from_beside) noexcept {
  send_out(arena, lock, block, from_beside);
}

bool arena_try_bring_in(Arena& arena, ArenaLock& lock, Block& block) noexcept { return bring_in(arena, lock, block); }

CUresult arena_bring_back_run(Arena& arena, ArenaLock& lock, PageRun& run, Release* copies) noexcept {
  const std::uint64_t releases = arena.releases;
  ++arena.planned_swaps.unplanned_returns;
  log(LogLevel::kDebug, "{} pages at {:#x} are touched while they are away, in iteration {}", run.count,
      run.window->base, arena.iterations);
  Release former;
  Span* const span = take_place(arena, run.owner, *run.window, &former);
  if (span == nullptr) return arena_end_run(arena, lock, run);
  const bool back = carry_back(arena, lock, run.owner, *run.window, span, former);
  if (arena.releases != releases) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!back) return arena.failure != CUDA_SUCCESS ? arena.failure : CUDA_ERROR_OUT_OF_MEMORY;
  copies->add(run.owner.former);
  comes_back(arena, run.owner, *run.window);
  return CUDA_SUCCESS;
}

CUresult arena_bring_back_window(Arena& arena, ArenaLock& lock, Block& block, Release* copies) noexcept {
  OwnWindow& window = *own_window(block);
  const std::uint64_t releases = arena.releases;
  ++arena.planned_swaps.unplanned_returns;
  Release former;
  Span* span = take_place(arena, block, window, &former);
  if (span == nullptr && !window.beside) span = make_place_again(arena, lock, block, window, &former);
  if (arena.releases != releases) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  log(LogLevel::kDebug, "block {} of {} bytes is touched while it is away, in iteration {}: its place is {}",
      block.number, block.bytes, arena.iterations, span != nullptr ? "free" : "another's");
  if (span == nullptr && !window.beside) {
    const CUresult result = give_chunks_beside(arena, lock, window);
    if (result != CUDA_SUCCESS) return result;
  }
  const bool back = carry_back(arena, lock, block, window, span, former);
  if (arena.releases != releases) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!back) return arena.failure != CUDA_SUCCESS ? arena.failure : CUDA_ERROR_OUT_OF_MEMORY;
  copies->add(block.former);
  if (!window.beside) comes_back(arena, block, window);
  return CUDA_SUCCESS;
}

}  // namespace memopt::agent
