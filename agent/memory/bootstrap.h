// Serves blocks before there is a plan, and what a plan does not know. Blocks of at least one chunk stand in a row
// until the program frees one (row.h); later ones get a window and chunks of their own. Smaller ones share. Windows of
// freed blocks stay mapped, to be used again, as long as what is held stays near what has been needed; then their
// chunks are taken for others.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/row.h"
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
  // code; CUDA_ERROR_OUT_OF_MEMORY too where the host is out of memory.
  CUresult serve(Block& block, bool only_held) noexcept;
  // The block lies in a window of ours.
  void take_back(Block& block, const Release& uses) noexcept;

  // For the slab. ------------------------------------------------------------------------------------------------
  // A chunk that is free, or will be: not the slab's yet, and not of a block of which `stays(number)` is true. Null:
  // none. Free ones first.
  template <typename Stays>
  Chunk* find_chunk_for_slab(Stays&& stays) {
    Chunk* found = nullptr;
    chunks_.for_each([&](Chunk& chunk) {
      if (chunk.slab_slot >= 0 || (chunk.home != nullptr && chunk.home->retiring)) return true;
      if (is_free(chunk)) {
        found = &chunk;
        return false;
      }
      if (found == nullptr && chunk.home != nullptr && chunk.home->kind == Window::Kind::kOwn &&
          !stays(chunk.home->map.first()->owner->number)) {
        found = &chunk;
      }
      return true;
    });
    return found;
  }
  static bool is_free(const Chunk& chunk) {
    return chunk.home == nullptr ||
           (chunk.home->kind == Window::Kind::kOwn && chunk.home->map.first()->owner == nullptr);
  }
  // The slab goes live: free windows with chunks of the slab, and free chunks, are given up by the bootstrap. Each such
  // chunk has no home afterwards; `former(slot, release)` tells its last uses. May throw std::bad_alloc.
  void hand_over(OwnershipMap& slab_map, std::uint64_t chunk_bytes);

  // A chunk that is nobody's, or already in a window or list of the bootstrap: then nothing happens.
  void keep(Chunk* chunk) noexcept;

  // Gives back to the driver what is not needed: at most `limit` windows at a time, and only where work is over.
  // Returns whether there may be more to do.
  bool trim(std::size_t limit) noexcept;

  // Gives back everything that no block owns a byte of, chunk by chunk, where work is over.
  void give_up_idle() noexcept;
  // How much that is, once work is over, without what the slab has of it.
  std::uint64_t idle_bytes() const noexcept;

  // Everything, owned or not, back to the driver: the context goes.
  void release_all() noexcept;

  std::uint64_t cached_bytes() const noexcept;  // held, owned by nobody

 private:
  CUresult serve_in_row(Block& block, bool only_held);
  CUresult serve_own(Block& block, bool only_held);
  CUresult serve_shared(Block& block, bool only_held);
  bool serve_between(Block& block) noexcept;
  bool take(Window& window, std::uint64_t begin, std::uint64_t end, Block& block) noexcept;
  Window* find_cached(std::size_t count) noexcept;
  bool shorten_row(bool wait) noexcept;
  bool give_up_shared_chunks(bool wait) noexcept;
  CUresult gather(std::size_t count, bool only_held, std::vector<Chunk*>* gathered);
  CUresult open(Window::Kind kind, std::vector<Chunk*> chunks, Window** window);
  bool dismantle(Window* window, bool wait) noexcept;
  void forget(Window* window) noexcept;
  bool may_grow(std::uint64_t bytes) const noexcept;
  bool could_have(std::size_t count, bool only_held) const noexcept;

  ChunkStore& chunks_;
  StreamTable& streams_;
  Row row_;
  std::vector<Window*> cached_;  // kOwn, without owner
  std::vector<Window*> shared_;
  std::vector<Window*> owned_;     // kOwn, of a live block
  std::vector<Window*> retiring_;  // to be unmapped when their work is over
  std::vector<Chunk*> free_;       // mapped nowhere, but perhaps in the slab that is being built
  std::uint64_t frees_ = 0;
  std::uint64_t served_bytes_ = 0;  // of live blocks, rounded up as they are held
  std::uint64_t served_peak_ = 0;
};

}  // namespace memopt::agent
