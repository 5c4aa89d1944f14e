// The windows that small blocks share, in the order in which they are filled: the first one that has room is found by a
// tree over the longest free run of each, in O(log of their number). Early windows fill up before later ones, so that
// those become free as a whole.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/memory/window.h"

namespace memopt::agent {

class SharedWindows {
 public:
  SharedWindows() = default;
  SharedWindows(const SharedWindows&) = delete;
  SharedWindows& operator=(const SharedWindows&) = delete;

  // The next add() needs no memory. Throws std::bad_alloc.
  void make_room();
  void add(Window* window) noexcept;
  void remove(Window* window) noexcept;

  // The first that has a free run of so many bytes; null if there is none.
  Window* find(std::uint64_t bytes) const noexcept;
  // Something was taken from the window, or given back.
  void changed(const Window& window) noexcept { set_largest(window.slot, window.space->largest()); }

  // Chunks of the window were given up.
  void gave_up(const Window& window, std::uint64_t bytes) noexcept {
    bytes_ -= bytes;
    changed(window);
  }

  void came_back(const Window& window, std::uint64_t bytes) noexcept {
    bytes_ += bytes;
    changed(window);
  }

  std::uint64_t bytes() const { return bytes_; }  // that have a chunk

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (Window* const window : windows_) {
      if (window != nullptr) visit(*window);
    }
  }

 private:
  void set_largest(std::size_t slot, std::uint64_t largest) noexcept;

  std::vector<Window*> windows_;        // by slot; null: free, and in `spare_`
  std::vector<std::uint32_t> spare_;    // slots
  std::vector<std::uint64_t> largest_;  // a heap-shaped tree of maxima: the slots' own are its second half
  std::uint64_t bytes_ = 0;
};

}  // namespace memopt::agent
