// Windows of their own for blocks that a plan swaps. Such a block's bytes lie in the slab, as those of all that is
// planned, but the program's addresses are these windows': when the block is away, its bytes of the slab are others',
// and its addresses are still its own. A window is mapped ahead onto the slab's chunks from its place on, which is a
// multiple of a chunk; in the steady state nothing is mapped or unmapped.
//
// A block that comes back at another time than planned, while its place is another's, gets chunks beside the slab: its
// window is mapped onto these until it is freed.
//
// Not thread-safe: guarded by the arena's lock. No call of the driver here waits for the device.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/host_store.h"
#include "agent/memory/window.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

// Window::chunks are those that it is mapped onto; null: nothing is mapped there.
struct OwnWindow : Window {
  bool wanted = false;      // by the plan that is live
  std::uint64_t place = 0;  // where it begins in the slab
  Block* block = nullptr;   // that lies in it; one at a time
  bool stays = false;       // its block, and those that come after it by the same plan: the address is stored each time
  bool moving = false;      // a copy of the block is being queued: nothing else may be done with it
  bool beside = false;      // it is mapped onto chunks that are not the slab's
  Span* taken = nullptr;    // of the slab, for the block, which is away still
  std::uint32_t early = 0;  // how often the block has come back too soon since it left as planned
  bool borrowed = false;    // its addresses are the region's, of pages that are a plan's (page_runs.h)
  Release taken_after;      // whose bytes these were last
  Release last_uses;        // of it, by the blocks before
  // For the block's bytes while it is away: as many as chunks, or none. Null in a borrowed window: not there.
  std::vector<HostPiece*> pieces;
  bool joined = false;  // they lie side by side, or no others did when the plan needed them first
};

inline OwnWindow* own_window(const Block& block) noexcept {
  return block.window != nullptr && block.window->kind == Window::Kind::kOwn ? static_cast<OwnWindow*>(block.window)
                                                                             : nullptr;
}

class OwnWindows {
 public:
  OwnWindows(ChunkStore& chunks, const Window& slab) noexcept : chunks_(chunks), slab_(slab) {}
  OwnWindows(const OwnWindows&) = delete;
  OwnWindows& operator=(const OwnWindows&) = delete;
  ~OwnWindows();

  // Another plan goes live: none is wanted.
  void begin_plan() noexcept;
  // One without a block, for a place of so many bytes: one that is there and not wanted, or another. It is wanted from
  // then on, and mapped by map(). Null: there are no addresses, or no host memory.
  OwnWindow* open(std::uint64_t place, std::uint64_t bytes) noexcept;
  // One of addresses that are the region's: nothing is mapped there. Null: there is no host memory.
  OwnWindow* borrow(std::uint64_t base, std::size_t chunks, std::uint64_t place) noexcept;
  // Nothing is in use by its addresses: it is mapped nowhere afterwards, and gone. The driver's code; then nothing has
  // changed.
  CUresult return_borrowed(OwnWindow* window) noexcept;
  // Is it mapped onto the slab as it is now?
  bool is_mapped(const OwnWindow& window) const noexcept;
  // Makes it so; nothing may be in use by its addresses. The driver's code; CUDA_ERROR_OUT_OF_MEMORY where the slab
  // lacks a chunk.
  CUresult map(OwnWindow& window) noexcept;
  // Maps it onto chunks beside the slab, as many as it has, which are its own then. Likewise.
  CUresult map_beside(OwnWindow& window, const std::vector<Chunk*>& chunks) noexcept;
  // Its chunks beside the slab are the caller's, and it is mapped nowhere. Likewise. May throw std::bad_alloc; then
  // nothing has changed.
  CUresult unmap_beside(OwnWindow& window, std::vector<Chunk*>* freed);

  // Pieces of host memory for it, if it lacks some, side by side if there are such: these are fewer copies. What was in
  // those that it has is not needed. False: there are not as many.
  bool take_pieces(OwnWindow& window, HostStore& host) noexcept;

  // The chunk is the slab's no more: no window is mapped onto it afterwards.
  void unmap_chunk(Chunk* chunk) noexcept;

  // Closes windows that the plan does not want and gives up chunks beside the slab, where work is over: `freed` are the
  // caller's, pieces go back to the host store. Returns whether there is more to do. May throw std::bad_alloc; what was
  // freed till then is in `freed`.
  bool tidy_up(StreamTable& streams, HostStore& host, std::vector<Chunk*>* freed);

  // Everything back to the driver; the context goes, and so do the pieces.
  void release() noexcept;

  std::size_t size() const { return windows_.size(); }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& window : windows_) visit(*window);
  }

 private:
  std::size_t first_slot(const OwnWindow& window) const noexcept;
  CUresult unmap(OwnWindow& window) noexcept;
  CUresult map_run(OwnWindow& window, std::size_t first, const std::vector<Chunk*>& chunks) noexcept;
  void close(OwnWindow& window) noexcept;

  ChunkStore& chunks_;
  const Window& slab_;
  std::vector<std::unique_ptr<OwnWindow>> windows_;
};

}  // namespace memopt::agent
