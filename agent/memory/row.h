// Blocks that a program makes before it frees any: weights, as a rule, that live on until its end. They stand side by
// side in one window, where a window for each would waste half a chunk a block. Chunks that are free again as a whole
// go back; what is left of the others is used twice only where there is no other memory.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/window.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

class Row {
 public:
  Row(ChunkStore& chunks, StreamTable& streams) : chunks_(chunks), streams_(streams) {}
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  // Does it still take blocks?
  bool open() const { return !closed_; }

  // How many more chunks the next block of that size takes; nothing changes. False: there is no
  // room for it.
  bool chunks_for(std::uint64_t bytes, std::size_t* count);
  // Appends the block, with as many chunks as chunks_for() said. The driver's code; then the chunks are still the
  // caller's. May throw std::bad_alloc; likewise.
  CUresult append(Block& block, const std::vector<Chunk*>& more);

  // The block lies here: it is freed, and the row closed.
  void take_back(Block& block, const Release& uses) noexcept;

  // Unmaps the chunks that are free as a whole and gives them to `freed`: those whose last uses are over, or, with
  // `wait`, all. Returns whether there were any. May throw std::bad_alloc; what was freed till then is in `freed`.
  bool give_up(bool wait, std::vector<Chunk*>* freed);
  bool may_give_up() const { return dirty_; }

  // Bytes that are free again, between blocks that stay. False: there are not as many side by side.
  bool serve_again(Block& block) noexcept;

  // Everything back to the driver; the context goes.
  void release_all() noexcept;

  const Window& window() const { return window_; }

  // Free, but not given up yet.
  std::uint64_t free_bytes() const noexcept { return window_.map.bytes() - window_.map.owned_bytes(); }

 private:
  ChunkStore& chunks_;
  StreamTable& streams_;
  Window window_;
  std::uint64_t used_ = 0;  // bytes from the beginning
  bool closed_ = false;
  bool dirty_ = false;  // something was freed since give_up() found nothing left to wait for
};

}  // namespace memopt::agent
