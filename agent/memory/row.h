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

  // How many more chunks the next block of that size takes; nothing changes. False: there is no room
  // for it.
  bool chunks_for(std::uint64_t bytes, std::size_t* count);
  // Appends the block, with as many chunks as chunks_for() said. The driver's code; then the chunks are still the
  // caller's. May throw std::bad_alloc; likewise.
  CUresult append(Block& block, const std::vector<Chunk*>& more);

  // The block lies here: it is freed, and the row closed.
  void take_back(Block& block, const Release& uses) noexcept;

  // Unmaps the chunks that are free as a whole and whose last uses are over, and gives them to `freed`, a few blocks'
  // at a time. Returns whether there were any. May throw std::bad_alloc; what was freed till then is in `freed`.
  bool give_up(std::vector<Chunk*>* freed);
  bool may_give_up() const { return !freed_.empty(); }
  // What is to be over before it can give up more, if it could not.
  const Release& awaited() const { return awaited_; }

  // Bytes that are free again, between blocks that stay. False: there are not as many side by side. May throw
  // std::bad_alloc.
  bool serve_again(Block& block);

  // Everything back to the driver; the context goes.
  void release_all() noexcept;

  const Window& window() const { return window_; }

  // Free, but not given up yet.
  std::uint64_t free_bytes() const noexcept { return window_.map.bytes() - window_.map.owned_bytes(); }

 private:
  // What give_up() can do for the chunks of one freed block.
  enum class Outcome : std::uint8_t { kNothing, kGaveUp, kLater };
  Outcome give_up_around(std::uint64_t offset, std::vector<Chunk*>* freed);
  void make_room_for_frees();

  ChunkStore& chunks_;
  StreamTable& streams_;
  Window window_;           // a chunk that was given up is null
  Block gone_;              // owner of bytes without a chunk; its number is 0
  std::uint64_t used_ = 0;  // bytes from the beginning
  bool closed_ = false;
  std::size_t live_ = 0;              // blocks
  std::vector<std::uint64_t> freed_;  // where blocks were freed whose chunks are not given up; has room for live ones
  std::size_t next_freed_ = 0;        // with which give_up() goes on
  Release awaited_;
};

}  // namespace memopt::agent
