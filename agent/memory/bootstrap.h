// Serves blocks before there is a plan, and what a plan does not know. Blocks of at least one chunk stand in a row
// until the program frees one (row.h); later ones get a window and chunks of their own. Smaller ones share
// (shared_windows.h). Windows of freed blocks stay mapped, to be used again, as long as what is held stays near what
// has been needed; then their chunks are taken for others. Serving and freeing never look at each block, window or
// chunk.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/row.h"
#include "agent/memory/shared_windows.h"
#include "agent/memory/window.h"
#include "agent/order/ownership.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

class Bootstrap {
 public:
  Bootstrap(ChunkStore& chunks, StreamTable& streams) : chunks_(chunks), streams_(streams), row_(chunks, streams) {}
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // Gives the block base, window, span and former uses. `only_held`: without asking the driver for more. The driver's
  // code; CUDA_ERROR_OUT_OF_MEMORY too where the host is out of memory. CUDA_ERROR_NOT_READY: what is held could serve
  // if the work that used it were over: the caller waits for awaited(), without the lock, and asks again.
  CUresult serve(Block& block, bool only_held) noexcept;
  const Release& awaited() const { return awaited_; }
  // The block lies in a window of ours.
  void take_back(Block& block, const Release& uses) noexcept;

  // For the slab. ------------------------------------------------------------------------------------------------
  // Another plan's blocks stay than those of the plan before: windows that were passed over are looked at again.
  void begin_slab_search() noexcept;
  // A chunk that is free, and not the slab's yet; null: none. The same one until it is the slab's.
  Chunk* find_free_chunk() noexcept;
  // Likewise, or one that will be free: of a block of which `stays(number)` is false. Free ones first.
  template <typename Stays>
  Chunk* find_chunk_for_slab(Stays&& stays) {
    if (Chunk* const chunk = find_free_chunk()) return chunk;
    while (!unsearched_owned_.empty()) {
      Window& window = unsearched_owned_.front();
      Chunk* const chunk = stays(window.map.first()->owner->number) ? nullptr : next_unsearched(window);
      if (chunk != nullptr) return chunk;
      unsearched_owned_.pop_front();
    }
    return nullptr;
  }
  static bool is_free(const Chunk& chunk) {
    return chunk.home == nullptr ||
           (chunk.home->kind == Window::Kind::kOwn && chunk.home->map.first()->owner == nullptr);
  }
  // The slab goes live: free windows with chunks of the slab, and free chunks, are given up by the bootstrap. Each such
  // chunk has no home afterwards; `former(slot, release)` tells its last uses. May throw std::bad_alloc.
  void hand_over(OwnershipMap& slab_map, std::uint64_t chunk_bytes);

  // A chunk that is the slab's no more: without an owner, or in a window or list of the bootstrap as it was.
  void keep(Chunk* chunk) noexcept;

  // Gives back to the driver what is not needed: at most `limit` windows at a time, and only where work is over.
  // Returns whether there may be more to do.
  bool trim(std::size_t limit) noexcept;

  // Gives back everything that no block owns a byte of, chunk by chunk, where work is over; something of what is to be
  // over before the rest can go is added to `awaited`.
  void give_up_idle(Release* awaited) noexcept;
  // How much that is, once work is over, without what the slab has of it.
  std::uint64_t idle_bytes() const noexcept;

  // Everything, owned or not, back to the driver: the context goes.
  void release_all() noexcept;

  std::uint64_t cached_bytes() const noexcept;  // held, without an owner

 private:
  CUresult serve_in_row(Block& block, bool only_held);
  CUresult serve_own(Block& block, bool only_held);
  CUresult serve_shared(Block& block, bool only_held);
  bool serve_between(Block& block);
  bool take_shared(Window& window, std::uint64_t bytes, Block& block) noexcept;
  bool take(Window& window, std::uint64_t begin, std::uint64_t end, Block& block) noexcept;
  Window* find_cached(std::size_t count) noexcept;
  bool shorten_row() noexcept;
  bool give_up_shared_chunks(Release* awaited) noexcept;
  CUresult gather(std::size_t count, bool only_held, std::vector<Chunk*>* gathered);
  CUresult open(Window::Kind kind, std::vector<Chunk*> chunks, Window** window) noexcept;
  void cache(Window& window) noexcept;
  void uncache(Window& window) noexcept;
  void own(Window& window) noexcept;
  void add_free(Chunk* chunk) noexcept;
  Chunk* next_unsearched(Window& window) noexcept;
  bool dismantle(Window* window) noexcept;
  void forget(Window* window) noexcept;
  bool may_grow(std::uint64_t bytes) const noexcept;
  bool could_have(std::size_t count, bool only_held) const noexcept;

  ChunkStore& chunks_;
  StreamTable& streams_;
  Row row_;
  using Listed = WindowList<&Window::listed>;
  using Unsearched = WindowList<&Window::unsearched>;
  Listed cached_;             // kOwn, without owner; the one that was freed first is the first
  WindowsBySize by_size_;     // the same
  Listed owned_;              // kOwn, of a live block
  Listed retiring_;           // to be unmapped when their work is over
  Listed empty_shared_;       // kShared, without block
  SharedWindows shared_;      // kShared
  std::vector<Chunk*> free_;  // mapped nowhere, but perhaps in the slab that is being built
  // Where the slab goes on looking for chunks: all before are its own already.
  std::size_t searched_free_ = 0;
  Unsearched unsearched_cached_;
  Unsearched unsearched_owned_;
  std::size_t cached_chunks_ = 0;   // of `cached_`
  std::uint64_t shared_owned_ = 0;  // bytes
  Release awaited_;
  std::uint64_t frees_ = 0;
  std::uint64_t served_bytes_ = 0;  // of live blocks, rounded up as they are held
  std::uint64_t served_peak_ = 0;
};

}  // namespace memopt::agent
