// A hash table by open addressing: linear probing, at most half full while there is memory, no marks of deleted
// entries: what an entry pushed aside moves back when that entry goes (Knuth, The Art of Computer Programming 3, 6.4,
// algorithm R). The memory is mapped, never the program's malloc.
//
// A slot is a plain struct with a `key`, of which 0 means that it is empty, and a static `home(key)`: a hash whose low
// bits are good. Constant-initialised, and trivially destructible: memory is given back by release() only.
//
// Not thread-safe.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/process/mapped_memory.h"

namespace memopt::agent {

// The key's slot, or the empty one that ends the search for it. Keys that another thread writes last, with release, are
// seen with what was written before them.
template <typename Slot>
std::size_t probe(const Slot* slots, std::size_t mask, std::uint64_t key) noexcept {
  for (std::size_t at = Slot::home(key) & mask;; at = (at + 1) & mask) {
    const std::uint64_t found = __atomic_load_n(&slots[at].key, __ATOMIC_ACQUIRE);
    if (found == key || found == 0) return at;
  }
}

template <typename Slot>
class OpenTable {
 public:
  // Null: there is none, as for key 0.
  Slot* find(std::uint64_t key) const noexcept {
    Slot* const slots = slots_;
    const std::size_t mask = mask_;
    // As probe(), with the question whether it was found answered once: 2 ns of a launch.
    for (std::size_t at = Slot::home(key) & mask; slots[at].key != 0; at = (at + 1) & mask) {
      if (slots[at].key == key) [[likely]]
        return &slots[at];
    }
    return nullptr;
  }

  // Makes sure that one more can be inserted; false when out of memory.
  bool reserve_one() noexcept {
    if ((count_ + 1) * 2 <= capacity()) [[likely]]
      return true;
    // Without memory for a larger one it may be filled up to the last slot, at which searches end.
    return grow() || count_ + 1 < capacity();
  }
  // After reserve_one(); its key is not there yet.
  void insert(const Slot& slot) noexcept {
    slots_[probe(slots_, mask_, slot.key)] = slot;
    ++count_;
  }
  void erase(Slot* slot) noexcept {
    std::size_t gap = static_cast<std::size_t>(slot - slots_);
    for (std::size_t at = (gap + 1) & mask_; slots_[at].key != 0; at = (at + 1) & mask_) {
      const std::size_t home = Slot::home(slots_[at].key) & mask_;
      if (((at - home) & mask_) < ((at - gap) & mask_)) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = Slot{};
    --count_;
  }
  void clear() noexcept {
    if (count_ == 0) return;
    for (Slot& slot : slots()) slot = Slot{};
    count_ = 0;
  }
  void release() noexcept {
    unmap();
    forget();
  }
  // In a forked child: another thread may have been in the middle of growing it, so its memory is left alone.
  void forget() noexcept { *this = OpenTable(); }

  std::size_t size() const noexcept { return count_; }
  // All, empty ones included.
  std::span<Slot> slots() noexcept { return {slots_, capacity()}; }

 private:
  static constexpr std::size_t kFirstCapacity = 512;

  // What there is to search before anything was inserted.
  static constexpr Slot* nothing() noexcept { return const_cast<Slot*>(&kNothing); }
  static constexpr Slot kNothing{};

  std::size_t capacity() const noexcept { return mask_ == 0 ? 0 : mask_ + 1; }
  void unmap() noexcept {
    if (capacity() != 0) munmap(slots_, capacity() * sizeof(Slot));
  }

  [[gnu::cold, gnu::noinline]] bool grow() noexcept {
    const std::size_t capacity = mask_ == 0 ? kFirstCapacity : 2 * (mask_ + 1);
    auto* const grown = static_cast<Slot*>(map_pages(capacity * sizeof(Slot)));
    if (grown == nullptr) return false;
    for (const Slot& slot : slots()) {
      if (slot.key != 0) grown[probe(grown, capacity - 1, slot.key)] = slot;
    }
    unmap();
    slots_ = grown;
    mask_ = capacity - 1;
    return true;
  }

  Slot* slots_ = nothing();
  std::size_t mask_ = 0;  // 0: none is mapped
  std::size_t count_ = 0;
};

}  // namespace memopt::agent
