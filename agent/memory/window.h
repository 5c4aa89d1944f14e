// A range of addresses mapped onto chunks, and who owns its bytes.
#pragma once

#include <cuda.h>

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/memory/shared_space.h"
#include "agent/order/ownership.h"

namespace memopt::agent {

struct Chunk;
class ChunkStore;
class StreamTable;

struct Window {
  enum class Kind : std::uint8_t { kShared, kRegion, kSlab, kOwn };
  using Hook = boost::intrusive::list_member_hook<>;

  Kind kind = Kind::kShared;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::vector<Chunk*> chunks;  // null: given up, its bytes are gone
  OwnershipMap map;
  std::uint64_t gone_bytes = 0;        // kShared, kSlab
  std::unique_ptr<SharedSpace> space;  // kShared: changes the map
  std::uint32_t slot = 0;              // kShared: in the list of those
  std::uint32_t kept_chunks = 0;       // kShared: of which the slab has a part

  // The span in which `offset` lies; null beyond the end.
  Span* find(std::uint64_t offset) noexcept {
    return space != nullptr ? space->find(offset) : map.find(offset, nullptr);
  }
  // All last uses, where nothing is owned.
  Release last_uses() noexcept { return space != nullptr ? space->last_uses() : map.last_uses(); }

  Hook listed;  // of the bootstrap allocator: those that share and have no block
};

using WindowList = boost::intrusive::list<Window, boost::intrusive::member_hook<Window, Window::Hook, &Window::listed>>;

// Bytes without a chunk are owned in the map, so that no block gets them, by an owner that is no block.
bool is_gone(const Span& span) noexcept;
// Bytes that nothing owns get that owner. Null: out of host memory.
Span* take_away(Window& window, std::uint64_t begin, std::uint64_t end, Span* hint = nullptr) noexcept;

// Does a block own any of it?
inline bool has_block(const Window& window) noexcept { return window.map.owned_bytes() != window.gone_bytes; }

// Bytes in chunks of which no block owns a byte.
std::uint64_t idle_bytes(const Window& window, std::uint64_t chunk_bytes) noexcept;

// What is waited for before something can be given back: as much as can be told together, and something in any case.
void await_also(const Release& uses, Release* awaited) noexcept;

// Unmaps the chunks of which no block owns a byte and whose last uses are over, and gives them to `freed`. What is to
// be over before others can go is added to `awaited`. May throw std::bad_alloc; what was freed till then is in `freed`.
void give_up_chunks(Window& window, ChunkStore& chunks, StreamTable& streams, std::vector<Chunk*>* freed,
                    Release* awaited);

// Unmaps the chunks that it has.
CUresult unmap_window(Window& window, ChunkStore& chunks) noexcept;

}  // namespace memopt::agent
