#pragma once

// A hash map from addresses to pointers, with open addressing. The runtime's archive must link without the C++ library,
// so the standard's containers are out of reach.

#include <stdint.h>
#include <stdlib.h>

namespace cudart {

template <typename Value>
class PointerMap {
 public:
  constexpr PointerMap() = default;

  Value* find(const void* key) const {
    if (!capacity_) return nullptr;
    for (size_t slot = home(key);; slot = (slot + 1) & (capacity_ - 1)) {
      if (slots_[slot].key == key) return slots_[slot].value;
      if (!slots_[slot].key) return nullptr;
    }
  }

  // Replaces what was there. False where memory is short. `key` is not null.
  bool insert(const void* key, Value* value) {
    if ((used_ + 1) * 4 > capacity_ * 3 && !grow()) return false;
    place(key, value);
    return true;
  }

  // Closes the gap by moving later entries of the probe chain up, so that no tombstones are needed.
  void erase(const void* key) {
    if (!capacity_) return;
    const size_t mask = capacity_ - 1;
    size_t gap = home(key);
    while (slots_[gap].key != key) {
      if (!slots_[gap].key) return;
      gap = (gap + 1) & mask;
    }
    for (size_t slot = (gap + 1) & mask; slots_[slot].key; slot = (slot + 1) & mask) {
      const size_t wanted = home(slots_[slot].key);
      if (((slot - wanted) & mask) < ((slot - gap) & mask)) continue;  // would land before its home
      slots_[gap] = slots_[slot];
      gap = slot;
    }
    slots_[gap] = Slot{};
    --used_;
  }

 private:
  struct Slot {
    const void* key = nullptr;
    Value* value = nullptr;
  };

  size_t home(const void* key) const {
    return (((reinterpret_cast<uintptr_t>(key) >> 3) * 0x9E3779B97F4A7C15ull) >> 24) & (capacity_ - 1);
  }

  void place(const void* key, Value* value) {
    size_t slot = home(key);
    while (slots_[slot].key && slots_[slot].key != key) slot = (slot + 1) & (capacity_ - 1);
    if (!slots_[slot].key) ++used_;
    slots_[slot] = Slot{key, value};
  }

  bool grow() {
    const size_t old_capacity = capacity_;
    Slot* old = slots_;
    const size_t capacity = old_capacity ? old_capacity * 2 : 64;
    Slot* slots = static_cast<Slot*>(calloc(capacity, sizeof(Slot)));
    if (!slots) return false;
    slots_ = slots;
    capacity_ = capacity;
    used_ = 0;
    for (size_t i = 0; i < old_capacity; ++i) {
      if (old[i].key) place(old[i].key, old[i].value);
    }
    free(old);
    return true;
  }

  Slot* slots_ = nullptr;
  size_t capacity_ = 0;  // a power of two, or 0
  size_t used_ = 0;
};

}  // namespace cudart
