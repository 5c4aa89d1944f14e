// Events of ours on one stream that are kept, in the order of their positions. A wait for a use takes the first one
// behind it: where that has been dropped a younger one, which waits for more than is needed. So there is room for as
// many as the host is ahead of the device, within bounds.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

namespace memopt::agent {

// `Event` has a `position`.
template <typename Event>
class EventRing {
 public:
  static constexpr std::size_t kFirst = 32;
  static constexpr std::size_t kMost = 2048;

  std::size_t size() const noexcept { return count_; }
  bool full() const noexcept { return count_ == places_.size(); }
  Event* operator[](std::size_t i) const noexcept { return places_[(first_ + i) % places_.size()]; }
  Event* last() const noexcept { return (*this)[count_ - 1]; }

  // The first at `position` or behind it; null if there is none. O(log n).
  Event* at_or_behind(std::uint64_t position) const noexcept {
    std::size_t begin = 0, end = count_;
    while (begin < end) {
      const std::size_t middle = (begin + end) / 2;
      if ((*this)[middle]->position < position) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin != count_ ? (*this)[begin] : nullptr;
  }

  // Room for twice as many. False: there are as many as may be, or there is no host memory.
  bool grow() noexcept {
    const std::size_t wanted = std::max(kFirst, 2 * places_.size());
    if (wanted > kMost) return false;
    try {
      std::vector<Event*> places(wanted);
      for (std::size_t i = 0; i < count_; ++i) places[i] = (*this)[i];
      places_.swap(places);
    } catch (const std::bad_alloc&) {
      return false;
    }
    first_ = 0;
    return true;
  }

  // Not where it is full; its position is behind the last one's.
  void add(Event* event) noexcept { places_[(first_ + count_++) % places_.size()] = event; }
  Event* take_first() noexcept {
    Event* const event = places_[first_];
    first_ = (first_ + 1) % places_.size();
    --count_;
    return event;
  }

 private:
  std::vector<Event*> places_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace memopt::agent
