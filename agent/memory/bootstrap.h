// Serves blocks before there is a plan, and what a plan does not know. Blocks of at least one chunk lie in one region
// (region.h), smaller ones share windows (shared_windows.h), or lie in the region too where they are some of many in a
// row of which none is freed. Freed bytes stay mapped and serve whatever fits, joined with what is free beside them, as
// long as what is held stays near what has been needed; then chunks that are free as a whole are moved to where they
// serve. Serving and freeing never look at each block, window or chunk.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/recent_needs.h"
#include "agent/memory/region.h"
#include "agent/memory/shared_windows.h"
#include "agent/memory/switch_over.h"
#include "agent/memory/window.h"
#include "agent/order/ownership.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

class Bootstrap {
 public:
  Bootstrap(ChunkStore& chunks, StreamTable& streams) : chunks_(chunks), streams_(streams), region_(chunks, streams) {}
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // Gives the block base, window, span and former uses. `only_held`: without asking the driver for more. The driver's
  // code; CUDA_ERROR_OUT_OF_MEMORY too where the host is out of memory. CUDA_ERROR_NOT_READY: what is held could serve
  // if the work that used it were over: the caller waits for awaited(), without the lock, and asks again.
  CUresult serve(Block& block, bool only_held) noexcept;
  const Release& awaited() const { return awaited_; }
  // What the program's own allocator would hold of the device, 0: not known. Where it is, more may be held so that
  // fewer chunks have to be moved, but less than that.
  void set_reference(std::uint64_t bytes) noexcept { reference_bytes_ = bytes; }
  // The block lies in a window of ours.
  void take_back(Block& block, const Release& uses) noexcept;

  // For the slab. ------------------------------------------------------------------------------------------------
  // All chunks are looked at again.
  void begin_slab_search() noexcept;
  // A chunk that is free, and not the slab's yet; null: none behind those that were looked at. The same one until it is
  // the slab's.
  Chunk* find_free_chunk() noexcept;
  // Likewise, or one that will be free: of blocks of which `stays(number)` is false. Free ones first.
  template <typename Stays>
  Chunk* find_chunk_for_slab(Stays&& stays) {
    Chunk* const chunk = find_free_chunk();
    return chunk != nullptr ? chunk : region_.find_chunk_for_slab(stays);
  }
  // Windows of small blocks in which none lies, and work on which is over, become free chunks, one at a time: the
  // next find_free_chunk() finds these. False: there is none.
  bool free_empty_window() noexcept;
  bool is_free(const Chunk& chunk) const noexcept {
    return chunk.home == nullptr || (chunk.home->kind == Window::Kind::kRegion && region_.is_free(chunk.page));
  }
  // When the last of the blocks that lie in a chunk of the region is freed.
  std::uint64_t freed_at(const Chunk& chunk, const SwitchTimes& times) const {
    return region_.freed_at(chunk.page, times);
  }
  // The slab goes live: those that are free of the chunks which it is given are given up by the bootstrap. `slab_map`
  // is told their last uses. Throws std::bad_alloc; then nothing has changed.
  void hand_over(const std::vector<Chunk*>& added, OwnershipMap& slab_map);

  // See Region. A chunk is counted out that is lent no more for another reason.
  void lend(std::size_t count, OwnershipMap& slab_map) noexcept { region_.lend(count, slab_map); }
  void end_loan(Chunk* chunk) noexcept;

  // Chunks that a plan keeps: blocks that stay lie in them, and the rest is the slab's. ---------------------------
  // The chunk that is mapped at `address`, if it is ours and not the slab's; null otherwise.
  Chunk* chunk_at(std::uint64_t address) noexcept;
  std::uint64_t address_of(const Chunk& chunk) const noexcept;
  // Visits what is owned of the chunk and what is free, by place: visit(span, begin, end), in bytes of the chunk.
  template <typename Visit>
  void for_each_part(const Chunk& chunk, Visit&& visit) const {
    const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
    const std::uint64_t first = chunk.page * chunk_bytes;
    for (Span* span = chunk.home->find(first); span != nullptr && span->begin < first + chunk_bytes;) {
      Span* const next = span->next;
      visit(*span, std::max(span->begin, first) - first, std::min(span->end, first + chunk_bytes) - first);
      span = next;
    }
  }
  // Blocks that stay have no more than they need, so that the rest can be the slab's: not even a byte for a pointer to
  // their end, as what lies there is found at other addresses. Throws std::bad_alloc.
  void shrink_blocks_in(const Chunk& chunk);
  // Free bytes of the chunk are no block's here any more. False: out of host memory.
  bool take_out(const Chunk& chunk, std::uint64_t begin, std::uint64_t end) noexcept;
  // What blocks have of it is the slab's, by its map, when they are freed.
  void keep_for(Chunk* chunk, OwnershipMap& slab_map) noexcept;
  // No block lies in it any more, and the slab has given it up: its work is over.
  void end_keeping(Chunk* chunk) noexcept;
  // Blocks do, and the slab is about to give it up: what it had of it, and used last so, is free here. Throws
  // std::bad_alloc; then nothing has changed.
  void put_back(Chunk* chunk, const Release& uses);
  std::size_t lent_chunks() const { return region_.lent(); }

  // A chunk that is the slab's no more: without an owner, or in the region, a window or a list as it was.
  void keep(Chunk* chunk) noexcept;
  // Likewise those that the slab has given up: what is still mapped where it was made goes back to the driver.
  void keep_given_up(const std::vector<Chunk*>& chunks) noexcept;

  // Gives back to the driver what is not needed: at most `limit` chunks at a time, and only where work is over; so
  // much that `keep` bytes without an owner stay. Returns whether there may be more to do.
  // What is to be over before more can go back is added to `awaited`.
  bool trim(std::size_t limit, std::uint64_t keep = 0, Release* awaited = nullptr) noexcept;
  // That trim() could give back, roughly.
  std::size_t idle_chunks() const noexcept { return free_.size() + region_.free_chunks(); }
  // That are the slab's, and mapped here until work is over.
  std::size_t retiring_chunks() const noexcept { return region_.retiring(); }
  // By how many bytes more than now was served at most of late.
  std::uint64_t needed_of_late() const noexcept { return needs_.peak() - served_bytes_; }
  bool needs_again() const noexcept { return needs_.again(); }
  void next_iteration() noexcept { needs_.next_iteration(served_bytes_); }
  // A plan goes live: what was needed before it says nothing of what is needed now.
  void forget_needs() noexcept {
    needs_.forget(served_bytes_);
    moved_ = 0;
  }

  // Gives back everything that no block owns a byte of, chunk by chunk, where work is over; something of what is to be
  // over before the rest can go is added to `awaited`.
  void give_up_idle(Release* awaited) noexcept;
  // How much that is, once work is over, without what the slab has of it.
  std::uint64_t idle_bytes() const noexcept;

  // Pages that are away: the region's. -----------------------------------------------------------------------------
  Region& region() { return region_; }
  // Adds chunks until there are so many: free ones, new ones, and such as are free as a whole. As serve(); where there
  // are fewer, those that there are stay in the list, and the caller's.
  // `at_once`: rather new ones than those whose work is to be waited for.
  CUresult take_chunks(std::size_t count, bool at_once, std::vector<Chunk*>* taken) noexcept;
  // Chunks that are mapped nowhere and serve what is asked for next.
  std::size_t free_chunks() const { return free_.size(); }
  // One of them, which is the caller's then; null: there is none.
  Chunk* take_free_chunk() noexcept;

  // Everything, owned or not, back to the driver: the context goes.
  void release_all() noexcept;

  std::uint64_t cached_bytes() const noexcept;  // held, without an owner

 private:
  // Windows without a block that are asked about at once in vain: work on some of them may go on for long.
  static constexpr std::size_t kTries = 64;

  CUresult serve_large(Block& block, bool only_held);
  CUresult serve_shared(Block& block, bool only_held);
  bool serve_in_row(Block& block);
  bool serve_between(Block& block);
  bool take_shared(Window& window, std::uint64_t bytes, Block& block) noexcept;
  // Gives its window what the block does not need. Returns how much; throws std::bad_alloc.
  std::uint64_t shrink_shared(Window& window, Block& block);
  std::size_t free_region_chunks(std::size_t limit, bool of_slab, Release* awaited) noexcept;
  bool give_up_shared_chunks(Release* awaited) noexcept;
  CUresult gather(std::size_t count, bool only_held, std::vector<Chunk*>* gathered, bool at_once = false,
                  bool keeps = false);
  CUresult open(std::vector<Chunk*> chunks, Window** window) noexcept;
  void add_free(Chunk* chunk) noexcept;
  bool dismantle(Window* window) noexcept;
  void forget(Window* window) noexcept;
  void return_kept(Window& window, std::uint64_t begin, std::uint64_t end, const Release& uses) noexcept;
  bool may_grow(std::uint64_t part) const noexcept;
  bool may_grow_for_moves() const noexcept;
  bool could_have(std::size_t count, bool only_held) const noexcept;

  ChunkStore& chunks_;
  StreamTable& streams_;
  Region region_;
  WindowList empty_shared_;  // without block
  SharedWindows shared_;
  std::vector<Chunk*> free_;        // mapped nowhere, but perhaps in the slab that is being built
  std::size_t searched_free_ = 0;   // of those: where the slab goes on looking; all before are its own already
  std::uint64_t shared_owned_ = 0;  // bytes
  std::size_t kept_chunks_ = 0;
  OwnershipMap* slab_map_ = nullptr;  // which has the rest of them
  Release awaited_;
  std::uint64_t served_bytes_ = 0;  // of live blocks, rounded up as they are held
  std::uint64_t served_peak_ = 0;
  std::uint64_t served_blocks_ = 0;    // so far
  std::uint64_t made_in_a_row_ = 0;    // blocks, since one was freed
  std::uint64_t wanted_ = 0;           // by the block that is being served
  std::uint64_t reference_bytes_ = 0;  // see set_reference
  std::uint64_t moved_ = 0;            // chunks that were unmapped where they were free, to serve elsewhere
  RecentNeeds needs_;
};

}  // namespace memopt::agent
