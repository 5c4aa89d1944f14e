// A range of addresses mapped onto chunks, and who owns its bytes.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "agent/order/ownership.h"

namespace memopt::agent {

struct Chunk;
class ChunkStore;
class StreamTable;

struct Window {
  enum class Kind : std::uint8_t { kOwn, kShared, kRow, kSlab };

  Kind kind = Kind::kOwn;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::vector<Chunk*> chunks;  // null: given up, its bytes are gone
  OwnershipMap map;
  std::uint64_t freed_at = 0;  // kOwn without owner: when, by the count of frees
  bool retiring = false;       // is only to be unmapped
};

// Bytes without a chunk are owned in the map, so that nobody gets them, by an owner that is no block.
bool is_gone(const Span& span) noexcept;

// Does a block own any of it?
bool has_block(const Window& window) noexcept;

// Bytes in chunks of which no block owns a byte.
std::uint64_t idle_bytes(const Window& window, std::uint64_t chunk_bytes) noexcept;

// Unmaps the chunks of which no block owns a byte, and gives them to `freed`: those whose last uses are over, or, with
// `wait`, all. Returns whether there are others, for later. May throw std::bad_alloc; what was freed till then is in
// `freed`.
bool give_up_chunks(Window& window, ChunkStore& chunks, StreamTable& streams, bool wait, std::vector<Chunk*>* freed);

// Unmaps the chunks that it has.
CUresult unmap_window(Window& window, ChunkStore& chunks) noexcept;

}  // namespace memopt::agent
