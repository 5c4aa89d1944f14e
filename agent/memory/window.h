// A range of addresses mapped onto chunks, and who owns its bytes.
#pragma once

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

struct Window {
  enum class Kind : std::uint8_t { kOwn, kShared, kRow, kSlab };
  using Hook = boost::intrusive::list_member_hook<>;

  Kind kind = Kind::kOwn;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::vector<Chunk*> chunks;
  OwnershipMap map;
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

}  // namespace memopt::agent
