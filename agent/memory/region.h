// Where blocks of at least a chunk lie: one window over a long range of addresses, of which chunks are mapped as they
// are needed. A freed block's bytes join the free ones beside it, and serve any block that fits, of whatever size, with
// no call of the driver. Chunks that are free as a whole can be unmapped and serve elsewhere.
//
// Blocks that are made before one is freed (weights, as a rule, that live to the end) stand side by side, whatever
// their size: each in chunks of its own would waste half a chunk. From then on only those do of which a large part
// would be wasted, and many in a row of which none is freed (an optimizer's states); the others begin with a chunk, so
// that their chunks are free when they are.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/free_runs.h"
#include "agent/memory/host_store.h"
#include "agent/memory/switch_over.h"
#include "agent/memory/window.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

inline bool lies_in_region(const Block& block) noexcept {
  return block.window != nullptr && block.window->kind == Window::Kind::kRegion;
}

struct PageRun;

class Region {
 public:
  Region(ChunkStore& chunks, StreamTable& streams) : chunks_(chunks), streams_(streams) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Free bytes for the block; false: there are not as many side by side. `anywhere`: between others too, which keeps
  // chunks from being free as a whole. May throw std::bad_alloc.
  bool serve(Block& block, bool anywhere);
  // A block of less than a chunk, in `room` bytes; without `may_break`, of chunks that others lie in.
  bool serve_small(Block& block, std::uint64_t room, bool may_break);
  // One of many that are made while none is freed, of whatever size: behind the last one of these, else from the
  // beginning of a chunk on that is free as a whole. Never aligned, so that they stand side by side; one of less than a
  // chunk in `room` bytes. May throw std::bad_alloc.
  bool serve_in_row(Block& block, std::uint64_t room);
  void take_back(Block& block, const Release& uses) noexcept;

  // What has to be mapped so that the block can be served: behind the end, or where chunks were given up.
  struct Growth {
    std::uint64_t begin = 0;  // of the block
    std::uint64_t at = 0;     // of the first chunk
    std::size_t chunks = 0;
  };
  // False: there are no addresses.
  bool plan_growth(const Block& block, Growth* growth);
  // Maps the chunks, and serves the block. The driver's code; the chunks are then still the caller's. May throw
  // std::bad_alloc; likewise.
  CUresult grow(const Growth& growth, const std::vector<Chunk*>& chunks, Block& block);

  // Unmaps up to `limit` chunks that are free as a whole and whose last uses are over, of the largest free runs first,
  // and gives them to `freed`. What is to be over before others can go is added to `awaited`. Returns how many. May
  // throw std::bad_alloc. `of_slab`: also those that are mapped for a slab which is being built.
  std::size_t give_up(std::size_t limit, bool of_slab, std::vector<Chunk*>* freed, Release* awaited);

  // For the slab. ------------------------------------------------------------------------------------------------
  // Chunks from that one on are looked at again.
  void search_from(std::size_t page) noexcept {
    searched_free_ = std::min(searched_free_, page);
    searched_owned_ = std::min(searched_owned_, page);
  }
  // A chunk that is free as a whole and not the slab's; null: none behind those that were looked at.
  Chunk* find_free_chunk() noexcept;
  // Likewise, or one that will be free: of blocks of which `stays(number)` is false.
  template <typename Stays>
  Chunk* find_chunk_for_slab(Stays&& stays) {
    for (; searched_owned_ < window_.chunks.size(); ++searched_owned_) {
      Chunk* const chunk = window_.chunks[searched_owned_];
      if (chunk == nullptr || chunk->slab_slot >= 0) continue;
      bool usable = true;
      for_each_span(searched_owned_, [&](const Span& span) {
        usable = usable && (span.owner == nullptr || (!is_gone(span) && !stays(span.owner->number)));
      });
      if (usable) return chunk;
    }
    return nullptr;
  }
  bool is_free(std::size_t page) const noexcept;
  // The block gives up what it has beyond its bytes, and one more. Returns how much. Throws std::bad_alloc.
  std::uint64_t shrink(Block& block);
  // Free bytes are no block's here any more. False: out of host memory.
  bool take_out(std::uint64_t begin, std::uint64_t end) noexcept;
  // Bytes of the page that were taken out can be had here again. Throws std::bad_alloc; then nothing has changed.
  void put_back(std::size_t page, const Release& uses);
  // Unmaps a chunk all of whose bytes were taken out, and are used no more.
  void give_up_gone(std::size_t page) noexcept;
  // When the last of the blocks that lie in the chunk is freed.
  std::uint64_t freed_at(std::size_t page, const SwitchTimes& times) const;
  // Of the chunks that the slab is given, those that lie here are free, and are the slab's from now on: nothing is
  // served from them here, and `map` is told their last uses. Throws std::bad_alloc; then nothing has changed.
  void hand_over(const std::vector<Chunk*>& added, OwnershipMap& map);
  // Chunks here that are in the slab's slots become the slab's as soon as no block lies in them: their bytes of `map`
  // are then given back. They are marked as lent.
  void lend(std::size_t count, OwnershipMap& map) noexcept {
    lent_ += count;
    slab_map_ = &map;
  }
  void end_loan() noexcept { --lent_; }
  std::size_t lent() const { return lent_; }
  // What was handed over stays mapped here: that costs nothing, and to unmap it does. Unmaps chunks that the slab has
  // given up since, `all`: any, for their addresses, as far as their work is over, at most `limit`; returns how many.
  std::size_t retire(std::size_t limit, bool all = false) noexcept;
  // That the slab has given up since.
  std::size_t retiring() const noexcept;
  void await_retiring(Release* awaited) const noexcept;

  // Pages that are away (region_swap.cpp). ------------------------------------------------------------------------
  // The bytes of a page, which is as large as a chunk, can lie in host memory instead of a chunk. The blocks in it keep
  // their addresses, and Block::away counts such pages. Copies are the caller's: while one is under way the page is
  // kLeaving or kComing, and nothing else may be done with it or with the blocks in it. A page that is kCopied is here
  // and has been copied, or is being copied: it counts as away, so that it is kept here before anything else is done
  // with a block in it.
  enum class Residency : std::uint8_t { kHere, kCopied, kLeaving, kAway, kComing };
  struct Page {
    Residency residency = Residency::kHere;
    HostPiece* piece = nullptr;  // null: what was in it is not needed
    std::uint32_t begin = 0;     // the bytes of it that blocks own when it leaves
    std::uint32_t end = 0;
    PageRun* run = nullptr;  // a plan's (page_runs.h): then its chunk is the slab's, and it has no piece of its own
  };
  // Pieces of pages whose last block is freed go back there.
  void set_host(HostStore* host) noexcept { host_ = host; }
  // Of a block that lies here: the first page, and the one behind the last.
  std::pair<std::size_t, std::size_t> pages_of(const Block& block) const noexcept;
  const Page& page(std::size_t number) const noexcept;
  std::uint64_t address_of(std::size_t page) const noexcept { return window_.base + page * chunks_.chunk_bytes(); }
  bool is_moving(const Block& block) const noexcept;
  bool has_copied(const Block& block) const noexcept;
  // Can the page leave? It has a chunk that is not the slab's, and `may_leave` says so of each block in it. What has to
  // be over before is added to `uses`, but of blocks of which `is_over` says that all of it is.
  template <typename MayLeave, typename IsOver>
  bool may_leave(std::size_t page, MayLeave&& may_leave, IsOver&& is_over, Release* uses) const {
    const Chunk* const chunk = page < window_.chunks.size() ? window_.chunks[page] : nullptr;
    if (chunk == nullptr || chunk->slab_slot >= 0 || this->page(page).residency != Residency::kHere) return false;
    bool can = true;
    for_each_span(page, [&](const Span& span) {
      if (span.owner == nullptr) {
        uses->add(span.release);
      } else if (is_gone(span) || !may_leave(*span.owner)) {
        can = false;
      } else if (!is_over(*span.owner)) {
        uses->add(span.owner->former);
        uses->add(span.owner->uses);
      }
    });
    return can;
  }
  // The page is being copied to the piece; all that used it is over. Throws std::bad_alloc; then nothing has changed.
  void begin_leaving(std::size_t page, HostPiece* piece);
  // It has been: its chunk is unmapped, and the caller's. Null: the driver refused, and the page is here as before.
  Chunk* end_leaving(std::size_t page) noexcept;
  // It is not to leave yet, and then is; or is kept here after all: the piece is the caller's again. `copy`: not null
  // where it may still be reading.
  void leave_later(std::size_t page) noexcept;
  void leave_now(std::size_t page) noexcept;
  HostPiece* keep_copied(std::size_t page, const StreamUse* copy) noexcept;
  // It has not been. The piece is the caller's again. `copy`: not null where a copy may still be reading.
  HostPiece* cancel_leaving(std::size_t page, const StreamUse* copy) noexcept;
  // The chunk is mapped where the page was. The driver's code: then the chunk is the caller's, and the page away.
  CUresult begin_coming(std::size_t page, Chunk* chunk);
  // The copy has been queued: who touches the blocks is behind `copy`. The piece is the caller's, null if there is
  // none.
  HostPiece* end_coming(std::size_t page, StreamUse copy) noexcept;
  // It could not be: the page is away. The chunk is the caller's, null if it can't be unmapped.
  Chunk* cancel_coming(std::size_t page) noexcept;

  // Pages of a run, all of which are in the same state. -----------------------------------------------------------
  // They are away, and no other run's; what was in them lies in `pieces` from now on, null where it is not needed.
  void begin_run(PageRun& run, HostPiece** pieces) noexcept;
  void move_run(const PageRun& run, Residency to) noexcept;
  // They are here, behind the copy.
  void return_run(const PageRun& run, StreamUse copy) noexcept;
  // They are away, and ordinary ones from now on. The pieces, as many as pages, are theirs.
  void end_run(const PageRun& run, HostPiece* const* pieces) noexcept;
  // The one that begins at the address; null: none.
  PageRun* run_at(std::uint64_t address) const noexcept { return page(page_at(address)).run; }
  std::size_t page_at(std::uint64_t address) const noexcept {
    return static_cast<std::size_t>((address - window_.base) / chunks_.chunk_bytes());
  }
  // Visits each block that has bytes in `count` pages from `first` on.
  template <typename Visit>
  void for_each_block(std::size_t first, std::size_t count, Visit&& visit) const {
    const std::uint64_t begin = first * chunks_.chunk_bytes();
    OwnershipMap& map = const_cast<OwnershipMap&>(window_.map);  // it keeps what it has found
    for (Span* span = map.find(begin, nullptr); span != nullptr && span->begin < begin + count * chunks_.chunk_bytes();
         span = span->next) {
      if (span->owner != nullptr && !is_gone(*span)) visit(*span->owner);
    }
  }

  // Visits the last uses of what is free in them.
  template <typename Visit>
  void for_each_free_part(std::size_t first, std::size_t count, Visit&& visit) const {
    const std::uint64_t begin = first * chunks_.chunk_bytes();
    OwnershipMap& map = const_cast<OwnershipMap&>(window_.map);
    for (const Span* span = map.find(begin, nullptr);
         span != nullptr && span->begin < begin + count * chunks_.chunk_bytes(); span = span->next) {
      if (span->owner == nullptr) visit(span->release);
    }
  }
  // Of pages that are here, and not in the slab's chunks.
  std::size_t pages_here() const noexcept {
    std::size_t here = 0;
    for (std::size_t number = 0; number < window_.chunks.size(); ++number) {
      const Chunk* const chunk = window_.chunks[number];
      here += chunk != nullptr && chunk->slab_slot < 0 && is_here(number) ? 1 : 0;
    }
    return here;
  }
  bool is_here(std::size_t number) const noexcept {
    return page(number).residency == Residency::kHere || page(number).residency == Residency::kCopied;
  }

  std::size_t leaving_pages() const noexcept { return leaving_; }
  std::uint64_t away_bytes() const noexcept { return (away_ - copied_) * chunks_.chunk_bytes(); }

  // Everything back to the driver; the context goes.
  void release_all() noexcept;

  const Window& window() const { return window_; }
  std::uint64_t free_bytes() const { return free_.bytes(); }
  std::size_t free_chunks() const { return free_.whole_units(); }
  // Of chunks that were handed over and are still mapped here.
  template <typename Visit>
  void for_each_retiring(Visit&& visit) const {
    for (const Retiring& one : retiring_) visit(window_.chunks[one.page]);
  }

 private:
  // A chunk that is the slab's, and mapped here still, and what was done by this address.
  struct Retiring {
    std::size_t page = 0;
    Release uses;
  };

  bool start();
  bool may_share(const Block& block) const noexcept;
  bool is_aligned(const Block& block) const noexcept;
  bool shares_chunks(const Span& span) const noexcept;
  void make_room(std::size_t chunks);
  bool take(Block& block, std::uint64_t begin, std::uint64_t room) noexcept;
  Release uses_of(std::size_t page) const noexcept;
  Span* punch(std::size_t page) noexcept;
  void return_lent(std::uint64_t begin, std::uint64_t end) noexcept;
  std::size_t unmap(std::size_t first, std::size_t last) noexcept;
  void count_away(Block& block) const noexcept;
  void drop_away(std::uint64_t begin, std::uint64_t end) noexcept;
  void add_away(std::size_t page, int change) noexcept;
  void use_all(std::size_t page, StreamUse copy) noexcept;
  template <typename Visit>
  void for_each_span(std::size_t page, Visit&& visit) const {
    const std::uint64_t begin = page * chunks_.chunk_bytes();
    OwnershipMap& map = const_cast<OwnershipMap&>(window_.map);  // it keeps what it has found
    for (Span* span = map.find(begin, nullptr); span != nullptr && span->begin < begin + chunks_.chunk_bytes();
         span = span->next) {
      visit(*span);
    }
  }

  ChunkStore& chunks_;
  StreamTable& streams_;
  Window window_;  // a chunk that was given up is null, and its bytes are gone
  FreeRuns free_;
  FreeRuns holes_;                  // of addresses where a chunk was given up
  std::size_t live_ = 0;            // blocks
  std::uint64_t side_by_side_ = 0;  // bytes of blocks that may share chunks
  bool closed_ = false;             // a block was freed
  std::uint64_t row_end_ = 0;       // behind the last block that was served in a row
  std::size_t searched_free_ = 0;   // chunks
  std::size_t searched_owned_ = 0;  // likewise
  std::vector<Retiring> retiring_;
  std::size_t lent_ = 0;  // chunks
  OwnershipMap* slab_map_ = nullptr;
  HostStore* host_ = nullptr;
  std::vector<Page> pages_;  // beyond its end they are here; empty until the first one leaves
  std::size_t leaving_ = 0;  // pages
  std::size_t copied_ = 0;   // likewise
  std::size_t away_ = 0;     // pages that have no chunk, or whose chunk they are about to lose or have just got
};

}  // namespace memopt::agent
