// A limit kept by swapping on demand (Zhang et al., section V): what is away comes back before an operation that names
// it is queued, into chunks that others leave for it (arena_leave.cpp).
//
// A page is one of four things (Region::Residency), each changed with the lock held; only copies, and waits for copies,
// are made without it. A thread that meets a page on its way waits for the copy alone, never for another thread's wait
// for the program's work: that may be held up by this very thread.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/memory/page_runs.h"
#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/order/in_flight.h"
#include "agent/process/log.h"

namespace memopt::agent {

bool arena_limited = false;

namespace {

// How often is tried again what other threads are in the way of: what is waited for may be in use again by then. A
// limit is rather passed; beyond a full device there is nothing.
struct Patience {
  int waits;
  int beginnings;
};
constexpr Patience kAtLimit{64, 16}, kOnFullDevice{4096, 64};

// Pages that come back together, where no other thread wants room: while they are copied, others leave for the next.
constexpr std::size_t kPagesTogether = 2;

// There is room for the operation when it has begun again (Operation::begins_again).
constexpr CUresult kBeginsAgain = CUDA_ERROR_SYSTEM_NOT_READY;

// The ticket of the calling thread's operation, if that may begin again; else 0.
constinit thread_local std::uint64_t t_may_begin_again __attribute__((tls_model("initial-exec"))) = 0;
// The first that it had.
constinit thread_local std::uint64_t t_turn __attribute__((tls_model("initial-exec"))) = 0;
// Before it began again, it gave way in vain to one that is held up.
constinit thread_local bool t_gave_way_in_vain __attribute__((tls_model("initial-exec"))) = false;
constinit thread_local CUresult t_refusal __attribute__((tls_model("initial-exec"))) = CUDA_SUCCESS;

const Patience& patience(const Arena& arena) noexcept {
  return arena.chunks.limit_is_device() ? kOnFullDevice : kAtLimit;
}

// A page's copy, as it is known with the lock held: the region's list of pages may be another one without it.
struct PageCopy {
  std::uint64_t address;
  std::byte* bytes;
  std::size_t count;
};

// Of pages that have a piece. False: out of host memory.
bool describe(const Region& region, const std::vector<std::size_t>& pages, std::vector<PageCopy>* copies) noexcept {
  try {
    copies->reserve(pages.size());
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (const std::size_t number : pages) {
    const Region::Page& page = region.page(number);
    if (page.piece == nullptr) continue;
    copies->push_back({region.address_of(number) + page.begin, page.piece->bytes + page.begin, page.end - page.begin});
  }
  return true;
}

void note_beyond(Arena& arena, std::string_view why) noexcept {
  // What is held is on its way below a new limit.
  if (arena.limit_change.is_new && arena.limit_change.vain < LimitChange::kPassed) return;
  const std::uint64_t beyond =
      arena.chunks.counts().held_bytes - std::min(arena.chunks.counts().held_bytes, arena.chunks.limit());
  if (arena.chunks.limit() == 0 || beyond == 0) return;
  const bool first = arena.swaps.beyond == 0;
  arena.swaps.beyond = std::max(arena.swaps.beyond, beyond);
  try {
    arena.swaps.beyond_why = why;
    if (first) log(LogLevel::kWarn, "the limit is passed by {} bytes: {}", beyond, why);
  } catch (const std::bad_alloc&) {
  }
}

constexpr std::string_view kInVain = "operations of other threads, which are not queued, were waited for in vain";

std::string_view why_beyond(const Arena& arena) noexcept {
  if (!arena.swaps.note.empty()) return arena.swaps.note;
  return "what is in use at once, or may not leave, needs more";
}

void note_beyond_now(Arena& arena, std::string_view why) noexcept {
  note_beyond(arena, why);
  // What is in use now need not be at the next call.
  if (arena.chunks.is_beyond()) arena.limit_change.pending = true;
}

// There are others, which may have room meanwhile.
bool may_begin_again(const Arena& arena) noexcept {
  return t_may_begin_again != 0 && (t_may_begin_again != arena.tickets || arena_gives_way());
}

// Chunks for pages that come back, added to the list until it has so many: from what is idle, from what leaves, from
// beyond the limit. CUDA_ERROR_NOT_READY: the lock was given back, and all is to be looked at again. `impatient`:
// nothing is waited for, and nothing leaves.
CUresult take_chunks(Arena& arena, ArenaLock& lock, std::size_t count, bool impatient, Pauses* pauses,
                     std::vector<Chunk*>* taken) noexcept {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  bool unqueued = false;
  bool gave_way = false;
  bool in_vain = t_gave_way_in_vain;
  const std::uint64_t releases = arena.releases;
  // Before any is taken: free chunks that are mapped ahead for a plan would be put back among the free ones when that
  // is given up, taken or not.
  arena.slab.give_up_unfinished();
  if (!impatient) {
    result = arena.bootstrap.take_chunks(count, false, taken);
    if (result == CUDA_ERROR_NOT_READY) {
      const Release awaited = arena.bootstrap.awaited();
      // What is only announced, by this thread or another, can't be waited for.
      unqueued = arena.streams.finish_or_give_up(lock, awaited) == CUDA_SUCCESS;
      if (arena.releases != releases || (unqueued && arena.streams.is_over(awaited, false))) {
        return CUDA_ERROR_NOT_READY;
      }
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    if (arena_take_left(arena, count - taken->size())) return CUDA_ERROR_NOT_READY;
    {
      Pauses for_leaving;
      if (arena_send_some_away(arena, lock, count - taken->size(), &for_leaving) != 0 || arena.releases != releases) {
        return CUDA_ERROR_NOT_READY;
      }
      gave_way = for_leaving.gave_way;
      in_vain = in_vain || for_leaving.count >= arena.most_pauses;
    }
    const std::uint32_t others = count_others_in_flight();
    if (arena_take_from_slab(arena, lock, count - taken->size())) return CUDA_ERROR_NOT_READY;
    // The other one may have been queued by now.
    if (gave_way || may_begin_again(arena)) return kBeginsAgain;
    if (unqueued && (arena_pause_for_others(arena, lock, pauses) || count_others_in_flight() != others)) {
      return CUDA_ERROR_NOT_READY;
    }
    in_vain = in_vain || pauses->count >= arena.most_pauses;
  } else if (may_begin_again(arena)) {
    // Others had what left, each time.
    return kBeginsAgain;
  }
  arena.chunks.allow_beyond(true);
  result = arena.bootstrap.take_chunks(count, impatient, taken);
  arena.chunks.allow_beyond(false);
  if (result == CUDA_SUCCESS) note_beyond_now(arena, in_vain ? kInVain : why_beyond(arena));
  return result == CUDA_ERROR_NOT_READY ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

// Is one of the block's copies being queued?
bool is_moving(const Arena& arena, const Block& block) noexcept {
  const OwnWindow* const window = own_window(block);
  if (window != nullptr) return window->moving;
  return lies_in_region(block) && const_cast<Arena&>(arena).bootstrap.region().is_moving(block);
}

// Has one of its pages been copied, and not left?
bool has_copied(const Arena& arena, const Block& block) noexcept {
  return lies_in_region(block) && const_cast<Arena&>(arena).bootstrap.region().has_copied(block);
}

// Maps the pages and copies what was in them. All of them, or none.
CUresult carry_in(Arena& arena, ArenaLock& lock, const std::vector<std::size_t>& pages, std::vector<Chunk*>& chunks,
                  StreamUse* copied) noexcept {
  Region& region = arena.bootstrap.region();
  const std::uint64_t releases = arena.releases;
  const CUstream stream = arena.streams.own_stream(kInSlot);
  CUresult result = stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  std::size_t mapped = 0;
  try {
    while (result == CUDA_SUCCESS && mapped < pages.size()) {
      result = region.begin_coming(pages[mapped], chunks[mapped]);
      if (result == CUDA_SUCCESS) ++mapped;
    }
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::vector<PageCopy> page_copies;
  if (result == CUDA_SUCCESS && !describe(region, pages, &page_copies)) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) {
    const CUcontext context = arena.context;
    const Unlocked unlocked(lock);
    const BesideCaptures beside(driver());
    const CurrentContext current(driver(), context);
    for (const PageCopy& copy : page_copies) {
      if (result != CUDA_SUCCESS) break;
      result = driver().copy_to_device_async(copy.address, copy.bytes, copy.count, stream);
    }
    // Nothing is unmapped that is still being written.
    if (result != CUDA_SUCCESS) driver().stream_synchronize(stream);
  }
  if (arena.releases != releases) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (result != CUDA_SUCCESS) {
    for (std::size_t i = 0; i < pages.size(); ++i) {
      Chunk* const chunk = i < mapped ? region.cancel_coming(pages[i]) : chunks[i];
      if (chunk != nullptr) arena.bootstrap.keep(chunk);
    }
    arena_failed(arena, result);
    return result;
  }
  *copied = arena.streams.queued_on_own(kInSlot);
  Release read;
  read.add(*copied);
  for (const std::size_t page : pages) {
    const std::uint64_t bytes = region.page(page).end - region.page(page).begin;
    HostPiece* const piece = region.end_coming(page, *copied);
    if (piece == nullptr) continue;
    arena.host.give_back(piece, read);
    arena.swaps.in_bytes += bytes;
    ++arena.swaps.in_pages;
  }
  return CUDA_SUCCESS;
}

// Chunks that a thread has taken and not used yet: other threads can't have them while it goes on looking.
class TakenChunks {
 public:
  explicit TakenChunks(Arena& arena) noexcept : arena_(arena), releases_(arena.releases) {}
  ~TakenChunks() { put_back(0); }
  TakenChunks(const TakenChunks&) = delete;
  TakenChunks& operator=(const TakenChunks&) = delete;

  std::vector<Chunk*>& list() noexcept { return list_; }
  void put_back(std::size_t from) noexcept {
    for (std::size_t i = from; i < list_.size(); ++i) {
      if (arena_.releases == releases_) {
        arena_.bootstrap.keep(list_[i]);
      } else {
        // All else went with its context.
        driver().release(list_[i]->handle);
        delete list_[i];
      }
    }
    list_.resize(std::min(from, list_.size()));
  }

 private:
  Arena& arena_;
  const std::uint64_t releases_;
  std::vector<Chunk*> list_;
};

// What one caller has tried so far.
struct Tries {
  int vain = 0;  // in a row, each after a wait
  Pauses pauses;
};

// What leaves may be taken by other threads each time: rather beyond the limit than not at all.
CUresult take_chunks(Arena& arena, ArenaLock& lock, std::size_t count, Tries* tries, TakenChunks* chunks) noexcept {
  const std::size_t had = chunks->list().size();
  const int pauses = tries->pauses.count;
  const bool impatient = tries->vain >= patience(arena).waits;
  const CUresult result = take_chunks(arena, lock, count, impatient, &tries->pauses, &chunks->list());
  if (chunks->list().size() > had) {
    tries->vain = 0;
  } else if (tries->pauses.count == pauses) {
    ++tries->vain;
  }
  return result;
}

// The first of the block's pages that are a plan's and away.
PageRun* away_run(const Region& region, const Block& block) noexcept {
  const auto [first, last] = region.pages_of(block);
  for (std::size_t number = first; number < last; ++number) {
    const Region::Page& page = region.page(number);
    if (page.residency == Region::Residency::kAway && page.run != nullptr) return page.run;
  }
  return nullptr;
}

// The block at the address is on the device afterwards, or on its way: behind the uses added to `copies`. `in_flight`:
// an operation is, which keeps from leaving again what is there.
CUresult bring_back(Arena& arena, ArenaLock& lock, std::uint64_t base, bool in_flight, Release* copies) noexcept {
  const std::uint64_t releases = arena.releases;
  TakenChunks chunks(arena);
  Tries tries;
  while (arena.releases == releases) {
    Block* const block = arena.blocks.find(base);
    if (block == nullptr) return CUDA_SUCCESS;
    if (has_copied(arena, *block)) {
      arena_keep_copied(arena, lock, *block);
      continue;
    }
    if (block->away == 0) {
      // Another thread may have brought it back since the operation looked: the operation is behind that copy, too.
      copies->add(block->former);
      return CUDA_SUCCESS;
    }
    Region& region = arena.bootstrap.region();
    if (is_moving(arena, *block)) {
      const Unlocked unlocked(lock);
      sched_yield();
      continue;
    }
    if (own_window(*block) != nullptr) return arena_bring_back_window(arena, lock, *block, copies);
    if (PageRun* const run = away_run(region, *block)) {
      const CUresult result = arena_bring_back_run(arena, lock, *run, copies);
      if (arena.releases != releases) break;
      if (result != CUDA_SUCCESS) return result;
      continue;
    }
    const std::size_t together = in_flight && !others_are_in_flight() ? kPagesTogether : ~std::size_t{0};
    std::vector<std::size_t> pages;
    try {
      const auto [first, last] = region.pages_of(*block);
      for (std::size_t page = first; page < last && pages.size() < together; ++page) {
        if (region.page(page).residency == Region::Residency::kAway) pages.push_back(page);
      }
    } catch (const std::bad_alloc&) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = take_chunks(arena, lock, pages.size(), &tries, &chunks);
    if (arena.releases != releases) break;
    if (result == CUDA_ERROR_NOT_READY) continue;
    if (result != CUDA_SUCCESS) return result;
    chunks.put_back(pages.size());
    // While something was waited for in vain, another thread may have brought them back.
    const bool still_away = std::all_of(pages.begin(), pages.end(), [&](std::size_t page) {
      return region.page(page).residency == Region::Residency::kAway && region.page(page).run == nullptr;
    });
    if (!still_away) continue;
    StreamUse copied;
    result = carry_in(arena, lock, pages, chunks.list(), &copied);
    chunks.list().clear();  // they are the region's, or have been put back
    if (result != CUDA_SUCCESS) return result;
    copies->add(copied);
    tries.vain = 0;
  }
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// Blocks that the operation touches and that are away, by address. May throw std::bad_alloc.
std::vector<std::uint64_t> away_blocks(Arena& arena, const Operation& operation) {
  if (operation.away <= Operation::kMostAway) {
    return {operation.away_bases, operation.away_bases + operation.away};
  }
  std::vector<std::uint64_t> bases;
  arena.blocks.for_each([&](const Block& block) {
    if (block.away != 0 && block.touched == operation.ticket) bases.push_back(block.base);
  });
  return bases;
}

void refuse(CUresult result) noexcept {
  t_refusal = result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_SUCCESS ? CUDA_SUCCESS : result;
}

}  // namespace

CUresult take_refusal() noexcept {
  const CUresult refusal = t_refusal;
  if (refusal != CUDA_SUCCESS) [[unlikely]]
    t_refusal = CUDA_SUCCESS;
  return refusal;
}

void arena_await_turn(ArenaLock& lock) noexcept {
  const TurnInFlight turn(t_turn);
  std::uint64_t first = 0;
  int pauses = 0;
  t_gave_way_in_vain = false;
  while (others_come_before(t_turn) && !t_gave_way_in_vain) {
    // One after the other has its turn: each is waited for.
    if (const std::uint64_t now = first_turn_of_others(); std::exchange(first, now) != now) pauses = 0;
    t_gave_way_in_vain = pauses++ >= arena()->most_pauses;
    if (!t_gave_way_in_vain) arena_pause(lock);
  }
}

bool arena_gives_way() noexcept { return t_may_begin_again != 0 && others_come_before(t_turn); }

CUresult arena_take_chunks(Arena& arena, ArenaLock& lock, std::size_t count, std::vector<Chunk*>* taken) noexcept {
  const std::uint64_t releases = arena.releases;
  TakenChunks chunks(arena);
  Tries tries;
  for (;;) {
    const CUresult result = take_chunks(arena, lock, count, &tries, &chunks);
    if (arena.releases != releases) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (result == CUDA_ERROR_NOT_READY) continue;
    if (result != CUDA_SUCCESS) return result;
    chunks.put_back(count);
    taken->swap(chunks.list());
    return CUDA_SUCCESS;
  }
}

void arena_bring_back(Arena& arena, ArenaLock& lock, Operation& operation) noexcept {
  const std::uint64_t releases = arena.releases;
  CUresult result = CUDA_SUCCESS;
  Release copies;
  // What is to leave for it waits for what used it, not for all that is queued.
  arena.streams.leave_event(lock, static_cast<StreamSlot>(operation.use.slot));
  if (arena.releases != releases) return;
  try {
    const std::vector<std::uint64_t> bases = away_blocks(arena, operation);
    operation.away = 0;
    if (operation.times_begun <= 1) {
      t_turn = operation.ticket;
      t_gave_way_in_vain = false;
    }
    const TurnInFlight turn(t_turn);
    const bool may =
        operation.times_begun != 0 && operation.times_begun <= patience(arena).beginnings && !t_gave_way_in_vain;
    t_may_begin_again = may ? operation.ticket : 0;
    for (const std::uint64_t base : bases) {
      result = bring_back(arena, lock, base, true, &copies);
      if (result != CUDA_SUCCESS) break;
    }
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  t_may_begin_again = 0;
  t_gave_way_in_vain = false;
  if (arena.releases != releases) return;
  arena.streams.leave_event(lock, kInSlot);
  if (arena.releases != releases) return;
  arena.streams.add_needs(static_cast<StreamSlot>(operation.use.slot), copies, &operation.needs);
  operation.begins_again = result == kBeginsAgain;
  if (result != CUDA_SUCCESS && !operation.begins_again) refuse(result);
}

bool arena_bring_back(Arena& arena, ArenaLock& lock, Block& block) noexcept {
  const std::uint64_t base = block.base;
  const std::uint64_t number = block.number;
  const std::uint64_t releases = arena.releases;
  // While its copies are waited for, another thread may send it away again: nothing is in flight that uses it.
  for (int i = 0; i < patience(arena).waits; ++i) {
    const Block* const there = arena.blocks.find(base);
    if (there != &block || there->number != number) return false;
    if (block.away == 0) return true;
    Release copies;
    if (bring_back(arena, lock, base, false, &copies) != CUDA_SUCCESS || arena.releases != releases) return false;
    if (arena.streams.finish(lock, copies) != CUDA_SUCCESS || arena.releases != releases) return false;
  }
  return false;
}

Block* arena_settled(Arena& arena, ArenaLock& lock, Block* block) noexcept {
  const std::uint64_t base = block->base;
  const std::uint64_t releases = arena.releases;
  while (block != nullptr && (is_moving(arena, *block) || has_copied(arena, *block))) {
    if (is_moving(arena, *block)) {
      const Unlocked unlocked(lock);
      sched_yield();
    } else {
      arena_keep_copied(arena, lock, *block);
    }
    block = arena.releases == releases ? arena.blocks.find(base) : nullptr;
  }
  return block;
}

void arena_note_beyond(Arena& arena) noexcept { note_beyond_now(arena, why_beyond(arena)); }

}  // namespace memopt::agent
