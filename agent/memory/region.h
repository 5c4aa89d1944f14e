// Where blocks of at least a chunk lie: one window over a long range of addresses, of which chunks are mapped as they
// are needed. A freed block's bytes join the free ones beside it, and serve any block that fits, of whatever size, with
// no call of the driver. Chunks that are free as a whole can be unmapped and serve elsewhere.
//
// Blocks that are made before one is freed (weights, as a rule, that live to the end) stand side by side, whatever
// their size: each in chunks of its own would waste half a chunk. From then on only those do of which a large part
// would be wasted; the others begin with a chunk, so that their chunks are free when they are.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/free_runs.h"
#include "agent/memory/switch_over.h"
#include "agent/memory/window.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

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
  // throw std::bad_alloc.
  std::size_t give_up(std::size_t limit, std::vector<Chunk*>* freed, Release* awaited);

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
  // When the last of the blocks that lie in the chunk is freed.
  std::uint64_t freed_at(std::size_t page, const SwitchTimes& times) const;
  // The chunks of the slab's slots from `first` on that lie here are free, and are the slab's from now on: nothing is
  // served from them here, and `map` is told their last uses. Throws std::bad_alloc; then nothing has changed.
  void hand_over(const std::vector<Chunk*>& slots, std::size_t first, OwnershipMap& map);
  // Chunks here that are in the slab's slots become the slab's as soon as no block lies in them: their bytes of `map`
  // are then given back. They are marked as lent.
  void lend(std::size_t count, OwnershipMap& map) noexcept {
    lent_ += count;
    slab_map_ = &map;
  }
  void end_loan() noexcept { --lent_; }
  std::size_t lent() const { return lent_; }
  // Unmaps what was handed over and whose work is over, at most `limit` chunks; returns how many.
  std::size_t retire(std::size_t limit) noexcept;
  std::size_t retiring() const { return retiring_.size(); }
  void await_retiring(Release* awaited) const noexcept;

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
  // A chunk that is the slab's, and mapped here until what was done by this address is over.
  struct Retiring {
    std::size_t page = 0;
    Release uses;
  };

  bool start();
  bool is_aligned(const Block& block) const noexcept;
  bool shares_chunks(const Span& span) const noexcept;
  void make_room(std::size_t chunks);
  bool take(Block& block, std::uint64_t begin, std::uint64_t room) noexcept;
  Release uses_of(std::size_t page) const noexcept;
  Span* punch(std::size_t page) noexcept;
  void return_lent(std::uint64_t begin, std::uint64_t end) noexcept;
  std::size_t unmap(std::size_t first, std::size_t last) noexcept;
  template <typename Visit>
  void for_each_span(std::size_t page, Visit&& visit) const {
    const std::uint64_t begin = page * chunks_.chunk_bytes();
    OwnershipMap& map = const_cast<OwnershipMap&>(window_.map);  // it keeps what it has found
    for (const Span* span = map.find(begin, nullptr); span != nullptr && span->begin < begin + chunks_.chunk_bytes();
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
  std::size_t searched_free_ = 0;   // chunks
  std::size_t searched_owned_ = 0;  // likewise
  std::vector<Retiring> retiring_;
  std::size_t lent_ = 0;  // chunks
  OwnershipMap* slab_map_ = nullptr;
};

}  // namespace memopt::agent
