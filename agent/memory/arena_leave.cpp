// What is expected to be used last of all leaves for host memory when room is needed (use_history.h); of what nothing
// is known, what has not been used for longest (Zhang et al., section V).
//
// What leaves is not in use: all work on it is over, or waited for, and no thread has announced more. It is copied
// first, and the next ones to leave are copied ahead: such a page stays where it is, and leaves when its chunk is
// needed, unless something has to do with a block in it before (Region::Residency::kCopied). So copies of several pages
// are under way at once, and those of the next ones to leave while the program and copies the other way go on. The host
// waits for a copy alone, never with a page marked for the program's work: that may be held up by a thread which needs
// the page.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <new>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/order/in_flight.h"
#include "agent/process/log.h"

namespace memopt::agent {
namespace {

// Of the next ones to leave so many are copied ahead: fewer where they are used again before they leave, as each then
// was copied for nothing. A copy of the program's own may wait for these.
constexpr std::size_t kFewestAhead = 1;
constexpr std::size_t kMostAhead = 8;
// Pages that leave together: while these are unmapped, others are copied. So many at most where other threads are in
// flight.
constexpr std::size_t kLeaveTogether = 4;
constexpr std::size_t kMostTogether = 32;

constexpr const char* kNoCopies = "the driver does not copy blocks to the host";

// How often is tried again what other threads are in the way of: what is waited for may be in use again by then.
constexpr int kWaits = 64;
// Likewise, before what they have announced is queued: up to Arena::most_pauses where the limit would be passed, or the
// device is full, and they get on; else it is tried again shortly after.
constexpr int kFewPauses = 8;

// Whoever wants room: may do without it; needs it, takes what leaves first, and asks again; or needs all of it.
enum class Need : std::uint8_t { kNone, kAny, kAll };

// Pages of the region that may leave; all, where it says nothing.
using Only = std::function<bool(std::size_t)>;

void say(Arena& arena, const char* what, CUresult result) noexcept {
  try {
    std::string note =
        result == CUDA_SUCCESS ? std::string(what) : fmt::format("{} (error {})", what, static_cast<int>(result));
    arena.swaps.note = note;
    if (arena.swaps.told_note == note) return;
    arena.swaps.told_note = note;
    log(LogLevel::kWarn, "the limit may be passed: {}", note);
  } catch (const std::bad_alloc&) {
  }
}

void tell_once(Arena& arena) noexcept {
  if (arena.swaps.told) return;
  arena.swaps.told = true;
  log(LogLevel::kInfo,
      "the limit of {} bytes is reached: blocks leave for host memory, and come back when they are used",
      arena.chunks.limit());
}

// Pages that can leave now, up to `wanted`, of what is expected to be used last. Where there is none, what the first
// of the others waits for goes to `awaited`. May throw std::bad_alloc.
// `oldest`: no operation before it is in flight. `only`: of these pages, if it says so. `unqueued`: some can't leave as
// operations are in flight that touch them, or may do so.
std::vector<std::size_t> choose(Arena& arena, std::size_t wanted, std::uint64_t oldest, const Only& only,
                                Release* awaited, bool* unqueued) {
  struct Candidate {
    std::uint64_t until_next;
    std::uint64_t touched;
    const Block* block;
  };
  Region& region = arena.bootstrap.region();
  std::vector<Candidate> candidates;
  const std::uint64_t now = arena.tickets;
  arena.blocks.for_each([&](Block& block) {
    if (!lies_in_region(block) || is_pinned(block)) return;
    candidates.push_back({block.history.until_next(now - std::min(now, block.touched)), block.touched, &block});
  });
  // Of many that could, few are to leave.
  const auto is_sooner = [](const Candidate& a, const Candidate& b) {
    return a.until_next != b.until_next ? a.until_next < b.until_next : a.touched > b.touched;
  };
  std::make_heap(candidates.begin(), candidates.end(), is_sooner);
  // A block that is being made or freed is in no list, and stays; so does what an operation touches that is in flight.
  const auto in_flight = [&](const Block& block) {
    return block.uses.everything() ? block.touched >= oldest : !arena.streams.is_queued(block.uses);
  };
  const auto may_leave = [&](const Block& block) {
    if (is_pinned(block) || arena.blocks.find(block.base) != &block) return false;
    if (!in_flight(block)) return true;
    *unqueued = true;
    return false;
  };
  const auto is_over = [&](const Block& block) { return block.touched <= arena.over; };
  std::vector<std::size_t> pages;
  bool waits = false;
  for (; !candidates.empty(); candidates.pop_back()) {
    std::pop_heap(candidates.begin(), candidates.end(), is_sooner);
    const Candidate candidate = candidates.back();
    const auto [first, last] = region.pages_of(*candidate.block);
    for (std::size_t page = first; page < last; ++page) {
      if (pages.size() == wanted) return pages;
      if (only && !only(page)) continue;
      Release uses;
      if (!region.may_leave(page, may_leave, is_over, &uses)) continue;
      if (!arena.streams.is_over(uses, true)) {
        // What is only announced can't be waited for.
        if (!uses.everything() && !arena.streams.is_queued(uses)) {
          *unqueued = true;
          break;
        }
        if (!waits) *awaited = uses;
        waits = true;
        break;
      }
      // The last page of a block may be the first one of the next.
      if (std::find(pages.begin(), pages.end(), page) == pages.end()) pages.push_back(page);
    }
  }
  return pages;
}

// Marks the pages as leaving; those for which there is no piece, or no host memory, are dropped from the list.
void begin(Arena& arena, std::vector<std::size_t>* pages) noexcept {
  std::size_t begun = 0;
  try {
    for (; begun < pages->size(); ++begun) {
      HostPiece* const piece = arena.host.take();
      if (piece == nullptr) break;
      try {
        arena.bootstrap.region().begin_leaving((*pages)[begun], piece);
      } catch (const std::bad_alloc&) {
        arena.host.give_back(piece, piece->former);
        throw;
      }
    }
  } catch (const std::bad_alloc&) {
  }
  pages->resize(begun);
}

// It is free once the copy is over.
void give_back(Arena& arena, HostPiece* piece, StreamUse copy) noexcept {
  Release reads;
  reads.add(copy);
  arena.host.give_back(piece, reads);
}

void keep(Arena& arena, const CopiedPage& copied) noexcept {
  Release copy;
  copy.add(copied.copy);
  const StreamUse* const reading = arena.streams.is_over(copy, true) ? nullptr : &copied.copy;
  give_back(arena, arena.bootstrap.region().keep_copied(copied.page, reading), copied.copy);
}

// Copies the pages, which are marked. The first `leaving` of them stay so, and are added to the list; the others are
// copied ahead. False: the driver does not copy, or the context is gone.
bool copy_out(Arena& arena, ArenaLock& lock, const std::vector<std::size_t>& pages, std::size_t leaving,
              std::vector<CopiedPage>* list) noexcept {
  Region& region = arena.bootstrap.region();
  const std::uint64_t releases = arena.releases;
  const CUcontext context = arena.context;
  const CUstream stream = arena.streams.own_stream(kOutSlot);
  CUresult result = stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) {
    // Pieces may still be read by a copy that brings other bytes back.
    UseSet needs;
    for (const std::size_t page : pages) arena.streams.add_needs(kOutSlot, region.page(page).piece->former, &needs);
    arena.streams.wait(lock, kOutSlot, needs);
    if (arena.releases != releases) return false;
  }
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const Region::Page page = region.page(pages[i]);
    if (stream == nullptr) {
      arena.host.give_back(region.cancel_leaving(pages[i], nullptr), page.piece->former);
      continue;
    }
    if (result == CUDA_SUCCESS) {
      const Unlocked unlocked(lock);
      const BesideCaptures beside(driver());
      const CurrentContext current(driver(), context);
      result = driver().copy_to_host_async(page.piece->bytes + page.begin, region.address_of(pages[i]) + page.begin,
                                           page.end - page.begin, stream);
    }
    if (arena.releases != releases) return false;
    const CopiedPage copied{pages[i], arena.streams.queued_on_own(kOutSlot)};
    // One that failed may be under way all the same.
    if (result != CUDA_SUCCESS) {
      give_back(arena, region.cancel_leaving(copied.page, &copied.copy), copied.copy);
      continue;
    }
    arena.swaps.out_bytes += page.end - page.begin;
    if (i < leaving) {
      list->push_back(copied);
    } else {
      region.leave_later(copied.page);
      try {
        arena.copied_ahead.pages.push_back(copied);
      } catch (const std::bad_alloc&) {
        keep(arena, copied);
      }
    }
    arena.streams.leave_event(lock, kOutSlot);
    if (arena.releases != releases) return false;
  }
  if (result == CUDA_SUCCESS) return true;
  say(arena, kNoCopies, result);
  arena_failed(arena, result);
  return false;
}

// May it leave now? What was free in it when it was copied may have been used since.
bool leaves_now(Arena& arena, const CopiedPage& copied) noexcept {
  const Region& region = arena.bootstrap.region();
  Release uses;
  region.for_each_free_part(copied.page, 1, [&](const Release& release) { uses.add(release); });
  return region.window().chunks[copied.page]->slab_slot < 0 && arena.streams.is_over(uses, true);
}

// Pages that have been copied ahead are marked, taken off the list and put on the other, which has room for them.
void take_copied(Arena& arena, std::size_t wanted, const Only& only, std::vector<CopiedPage>* leaving) noexcept {
  CopiedAhead& ahead = arena.copied_ahead;
  for (std::size_t i = 0; i < ahead.pages.size() && leaving->size() < wanted;) {
    const CopiedPage copied = ahead.pages[i];
    if (only && !only(copied.page)) {
      ++i;
      continue;
    }
    ahead.pages.erase(ahead.pages.begin() + static_cast<std::ptrdiff_t>(i));
    if (!leaves_now(arena, copied)) {
      keep(arena, copied);
      continue;
    }
    arena.bootstrap.region().leave_now(copied.page);
    leaving->push_back(copied);
    ahead.most = std::min(ahead.most + 1, kMostAhead);
  }
}

// Those leave, as soon as their copies are over. Returns how many chunks are free for it. Gives the lock back.
std::size_t leave(Arena& arena, ArenaLock& lock, const std::vector<CopiedPage>& pages) noexcept {
  Region& region = arena.bootstrap.region();
  const std::uint64_t releases = arena.releases;
  Release copies;
  for (const CopiedPage& copied : pages) copies.add(copied.copy);
  CUresult result = CUDA_SUCCESS;
  {
    const BesideCaptures beside(driver());
    result = arena.streams.finish(lock, copies);
  }
  if (arena.releases != releases) return 0;
  std::size_t freed = 0;
  for (const CopiedPage& copied : pages) {
    Chunk* const chunk = result == CUDA_SUCCESS ? region.end_leaving(copied.page) : nullptr;
    if (chunk == nullptr) {
      const StreamUse* const reading = result == CUDA_SUCCESS ? nullptr : &copied.copy;
      give_back(arena, region.cancel_leaving(copied.page, reading), copied.copy);
      if (result == CUDA_SUCCESS) arena.swaps.refused = true;
      continue;
    }
    arena.bootstrap.keep(chunk);
    ++arena.swaps.out_pages;
    ++freed;
  }
  if (freed != 0) arena.swaps.note.clear();
  if (result != CUDA_SUCCESS) {
    arena_forget_copies(arena);
    say(arena, kNoCopies, result);
    arena_failed(arena, result);
  } else if (arena.swaps.refused) {
    say(arena, "the driver does not unmap what has been copied to the host: nothing leaves any more", CUDA_SUCCESS);
  }
  return freed;
}

// What keeps pages from leaving, where none can.
struct Obstacles {
  Release awaited;           // work that the first of them waits for
  bool unqueued = false;     // operations are in flight that touch some, or may do so
  std::uint64_t oldest = 0;  // no operation before it was in flight
  std::uint32_t others = 0;  // threads that had some in flight, when it was looked at
};

enum class Chosen : std::uint8_t { kAny, kLookAgain, kFailed };

// Up to `wanted` pages that may leave, that are copied, or being copied, and marked; with kAny there may be none.
// kLookAgain: some may have to stay, or can leave by another copy. Where few are copied then, more are.
Chosen choose_leaving(Arena& arena, ArenaLock& lock, std::size_t wanted, const Only& only,
                      std::vector<CopiedPage>* leaving, Obstacles* obstacles) {
  const std::uint64_t releases = arena.releases;
  std::vector<CopiedPage>& copied = arena.copied_ahead.pages;
  const auto count = [&] {
    const auto is_meant = [&](const CopiedPage& one) { return !only || only(one.page); };
    return static_cast<std::size_t>(std::count_if(copied.begin(), copied.end(), is_meant));
  };
  leaving->reserve(wanted);
  copied.reserve(kMostAhead + wanted);
  const std::size_t ahead = only ? 0 : arena.copied_ahead.most;
  std::size_t there = count();
  std::vector<std::size_t> pages;
  if (there < wanted + (ahead + 1) / 2) {
    if (arena.host.free_pieces() < wanted + ahead - there) {
      arena.host.grow(lock, wanted + ahead - there);
      if (arena.releases != releases) return Chosen::kFailed;
      there = count();
    }
    const std::size_t pieces = arena.host.free_pieces();
    if (pieces == 0 && there == 0) {
      // They have them all: of pages that are not to leave.
      if (!copied.empty()) {
        arena_forget_copies(arena);
        return Chosen::kLookAgain;
      }
      say(arena, arena.host.note().c_str(), CUDA_SUCCESS);
      return Chosen::kFailed;
    }
    obstacles->others = count_others_in_flight();
    obstacles->oldest = oldest_in_flight();
    const std::size_t more = std::min(pieces, wanted + ahead - std::min(there, wanted + ahead));
    pages = choose(arena, more, obstacles->oldest, only, &obstacles->awaited, &obstacles->unqueued);
    // Launches that name what is to leave are over: so is looking at what they have stored.
    if (!pages.empty() && arena_read_scans(arena, lock)) {
      return arena.releases == releases ? Chosen::kLookAgain : Chosen::kFailed;
    }
  }
  // Nothing else is waited for once pages are marked.
  const std::size_t before = copied.size();
  take_copied(arena, wanted, only, leaving);
  if (leaving->empty() && pages.empty() && copied.size() != before) return Chosen::kLookAgain;
  const std::size_t lacking = wanted - leaving->size();
  begin(arena, &pages);
  if (pages.empty()) return Chosen::kAny;
  tell_once(arena);
  return copy_out(arena, lock, pages, lacking, leaving) ? Chosen::kAny : Chosen::kFailed;
}

// Is it worth another pause, after so many, that operations are in flight which touch what could leave? Of two that
// need room the older one has it first: the other one gives its place up, and is no longer in flight. One that can't
// is not waited for for long.
bool may_pause(const Arena& arena, Need need, Pauses* pauses) noexcept {
  pauses->gave_way = false;
  if (!others_are_in_flight()) return false;
  if (pauses->count < kFewPauses) return true;
  pauses->gave_way = arena_gives_way();
  if (pauses->count >= arena.most_pauses || pauses->gave_way) return false;
  if (arena.chunks.limit_is_device()) return true;
  pauses->stuck.set();
  return need != Need::kNone && others_get_on();
}

bool pause(const Arena& arena, ArenaLock& lock, Need need, Pauses* pauses) noexcept {
  if (!may_pause(arena, need, pauses)) return false;
  ++pauses->count;
  arena_pause(lock);
  return true;
}

std::size_t send_away(Arena& arena, ArenaLock& lock, std::size_t chunks, const Only& only, Need need, Pauses* pauses) {
  // Where there is no limit any more, what is still away may find the device full.
  if (!arena.host.is_started() || arena.swaps.refused) return 0;
  // More than is held can't leave, whatever is asked for.
  chunks = std::min(chunks, static_cast<std::size_t>(arena.chunks.counts().held_bytes / arena.chunks.chunk_bytes()));
  const std::uint64_t releases = arena.releases;
  std::size_t freed = 0;
  for (int waits = 0; freed < chunks && waits < kWaits; ++waits) {
    if (captures_are_open()) {
      say(arena, "nothing leaves while a stream is captured into a graph", CUDA_SUCCESS);
      return freed;
    }
    if (arena_scan_before_leaving(arena, lock) && arena.releases != releases) return 0;
    // Where others are in flight, all at once: two that had a part of what they need each might wait for each other.
    const std::size_t together = others_are_in_flight() ? kMostTogether : kLeaveTogether;
    Obstacles obstacles;
    std::vector<CopiedPage> leaving;
    const Chosen chosen = choose_leaving(arena, lock, std::min(chunks - freed, together), only, &leaving, &obstacles);
    if (arena.releases != releases) return 0;
    if (chosen == Chosen::kLookAgain) continue;
    if (!leaving.empty()) {
      const std::size_t left = leave(arena, lock, leaving);
      if (arena.releases != releases) return 0;
      freed += left;
      if (left != leaving.size() || chosen == Chosen::kFailed || need == Need::kAny) return freed;
      waits = -1;
      continue;
    }
    // Rather less than all of it than to wait for the program.
    if (freed != 0 || chosen == Chosen::kFailed) return freed;
    // Another thread is about to make room.
    if (obstacles.awaited.empty() && arena.bootstrap.region().leaving_pages() != 0) {
      {
        const Unlocked unlocked(lock);
        sched_yield();
      }
      if (arena.releases != releases) return 0;
      if (!only && arena.bootstrap.free_chunks() >= chunks) return chunks;
      --waits;
      continue;
    }
    // Another thread is about to queue what it has announced, or waits for room itself and begins again.
    if (obstacles.awaited.empty() && obstacles.unqueued) {
      const bool paused = pause(arena, lock, need, pauses);
      if (arena.releases != releases) return 0;
      // Or has queued it meanwhile, which takes no lock: what was in its way then may leave now, or be waited for.
      const bool queued_since = !paused && count_others_in_flight() != obstacles.others;
      if (queued_since) ++pauses->count;
      if (paused || (queued_since && pauses->count <= arena.most_pauses)) {
        --waits;
        continue;
      }
    }
    // All that is not in flight has been queued. Where that can't be told (0), nothing is known to be.
    const std::uint64_t oldest = obstacles.oldest;
    const std::uint64_t queued = oldest == 0 ? 0 : std::min(oldest, arena.tickets + 1) - 1;
    // What a plan has in its slab comes last.
    if (obstacles.awaited.empty()) return only ? 0 : arena_give_up_planned(arena, lock);
    if (arena.streams.finish_or_give_up(lock, obstacles.awaited) != CUDA_SUCCESS) return 0;
    if (arena.releases != releases) return 0;
    if (obstacles.awaited.everything()) arena.over = std::max(arena.over, queued);
  }
  return freed;
}

std::size_t try_to_send_away(Arena& arena, ArenaLock& lock, std::size_t chunks, const Only& only, Need need,
                             Pauses* pauses) noexcept {
  try {
    return send_away(arena, lock, chunks, only, need, pauses);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace

void arena_pause(ArenaLock& lock) noexcept {
  constexpr timespec kPause{0, 50'000};
  const Unlocked unlocked(lock);
  nanosleep(&kPause, nullptr);
}

bool arena_pause_for_others(const Arena& arena, ArenaLock& lock, Pauses* pauses) noexcept {
  return pause(arena, lock, Need::kAny, pauses);
}

void arena_forget_copies(Arena& arena) noexcept {
  for (const CopiedPage& copied : arena.copied_ahead.pages) keep(arena, copied);
  arena.copied_ahead.pages.clear();
}

void arena_keep_copied(Arena& arena, ArenaLock& lock, const Block& block) noexcept {
  CopiedAhead& ahead = arena.copied_ahead;
  if (ahead.pages.empty() || !lies_in_region(block)) return;
  const auto [first, last] = arena.bootstrap.region().pages_of(block);
  const auto is_its = [first = first, last = last](const CopiedPage& copied) {
    return copied.page >= first && copied.page < last;
  };
  Release copies;
  for (const CopiedPage& copied : ahead.pages) {
    if (is_its(copied)) copies.add(copied.copy);
  }
  if (copies.empty()) return;
  ahead.most = std::max(ahead.most / 2, kFewestAhead);
  // Not as former uses: with those on many streams they could not be told apart any more.
  const std::uint64_t releases = arena.releases;
  {
    const BesideCaptures beside(driver());
    arena_failed(arena, arena.streams.finish(lock, copies));
  }
  if (arena.releases != releases) return;
  // Another thread may have kept them, or be about to have them leave.
  std::erase_if(ahead.pages, [&](const CopiedPage& copied) {
    if (is_its(copied)) keep(arena, copied);
    return is_its(copied);
  });
}

std::size_t arena_send_away(Arena& arena, ArenaLock& lock, std::size_t chunks, const Only& only) noexcept {
  Pauses pauses;
  return try_to_send_away(arena, lock, chunks, only, Need::kNone, &pauses);
}

std::size_t arena_send_some_away(Arena& arena, ArenaLock& lock, std::size_t chunks, Pauses* pauses) noexcept {
  return try_to_send_away(arena, lock, chunks, {}, Need::kAny, pauses);
}

std::size_t arena_send_away_for_block(Arena& arena, ArenaLock& lock, std::size_t chunks) noexcept {
  Pauses pauses;
  return try_to_send_away(arena, lock, chunks, {}, Need::kAll, &pauses);
}

}  // namespace memopt::agent
