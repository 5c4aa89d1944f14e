// A range of addresses mapped onto chunks, and who owns its bytes.
#pragma once

#include <cuda.h>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "agent/memory/shared_space.h"
#include "agent/order/ownership.h"

namespace memopt::agent {

struct Chunk;
class ChunkStore;
class StreamTable;

struct Window {
  enum class Kind : std::uint8_t { kOwn, kShared, kRow, kSlab };
  using Hook = boost::intrusive::list_member_hook<>;

  Kind kind = Kind::kOwn;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::vector<Chunk*> chunks;  // null: given up, its bytes are gone
  OwnershipMap map;
  std::uint64_t gone_bytes = 0;        // kShared, kSlab
  std::unique_ptr<SharedSpace> space;  // kShared: changes the map
  std::uint32_t slot = 0;              // kShared: in the list of those
  std::uint64_t freed_at = 0;          // kOwn without owner: when, by the count of frees
  bool retiring = false;               // is only to be unmapped

  // The span in which `offset` lies; null beyond the end.
  Span* find(std::uint64_t offset) noexcept {
    return space != nullptr ? space->find(offset) : map.find(offset, nullptr);
  }
  // All last uses, where nothing is owned.
  Release last_uses() noexcept { return space != nullptr ? space->last_uses() : map.last_uses(); }

  // Of the bootstrap allocator (bootstrap.h): the list it is in; by size, of those that are cached; those in which the
  // slab has not looked at all chunks yet, and how many it has looked at.
  Hook listed;
  boost::intrusive::set_member_hook<> by_size;
  Hook unsearched;
  std::size_t searched = 0;
};

template <Window::Hook Window::*kHook>
using WindowList = boost::intrusive::list<Window, boost::intrusive::member_hook<Window, Window::Hook, kHook>>;

// Number of chunks, then the time of the free.
struct WindowSize {
  using type = std::pair<std::size_t, std::uint64_t>;
  type operator()(const Window& window) const { return {window.chunks.size(), window.freed_at}; }
};
using WindowsBySize =
    boost::intrusive::set<Window,
                          boost::intrusive::member_hook<Window, boost::intrusive::set_member_hook<>, &Window::by_size>,
                          boost::intrusive::key_of_value<WindowSize>>;

// Bytes without a chunk are owned in the map, so that no block gets them, by an owner that is no block.
bool is_gone(const Span& span) noexcept;

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
