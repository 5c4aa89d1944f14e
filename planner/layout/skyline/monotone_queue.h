// Internal to planner/layout/skyline: a queue of lines, the lowest first and of those the earliest, of which none is
// pushed below the one that was lowest last.
//
// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, J. ACM 37, 1990): lines lie in buckets by the highest bit in which
// their height differs from the last lowest one. Each moves to lower buckets only, and what is void by then is left out
// on the way: a binary heap carries it to the end. Those at the lowest height are a heap by begin.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memopt::layout {

class MonotoneQueue {
 public:
  struct Entry {
    std::uint64_t height;
    std::uint32_t lo, segment, version;
  };

  void clear() {
    for (std::vector<Entry>& bucket : buckets_) bucket.clear();
    lowest_.clear();
    last_ = 0;
  }

  // Not below the entry that `front` returned last.
  void push(const Entry& entry) {
    if (entry.height != last_) {
      bucket_of(entry.height).push_back(entry);
      return;
    }
    lowest_.push_back(entry);
    std::push_heap(lowest_.begin(), lowest_.end(), is_later);
  }

  // Of those for which `is_valid` holds, of which there must be one. Others are taken out.
  template <class IsValid>
  const Entry& front(IsValid&& is_valid) {
    for (;;) {
      while (!lowest_.empty()) {
        if (is_valid(lowest_.front())) return lowest_.front();
        std::pop_heap(lowest_.begin(), lowest_.end(), is_later);
        lowest_.pop_back();
      }
      refill(is_valid);
    }
  }

 private:
  static bool is_later(const Entry& a, const Entry& b) { return a.lo > b.lo; }

  std::vector<Entry>& bucket_of(std::uint64_t height) {
    return buckets_[static_cast<std::size_t>(std::bit_width(height ^ last_) - 1)];
  }

  template <class IsValid>
  void refill(IsValid&& is_valid) {
    std::size_t first = 0;
    while (buckets_[first].empty()) ++first;
    moved_.clear();
    std::swap(moved_, buckets_[first]);
    std::erase_if(moved_, [&](const Entry& entry) { return !is_valid(entry); });
    if (moved_.empty()) return;
    last_ = std::min_element(moved_.begin(), moved_.end(), [](const Entry& a, const Entry& b) {
              return a.height < b.height;
            })->height;
    for (const Entry& entry : moved_) push(entry);
  }

  std::array<std::vector<Entry>, 64> buckets_;
  std::vector<Entry> lowest_;  // at `last_`
  std::vector<Entry> moved_;
  std::uint64_t last_ = 0;
};

}  // namespace memopt::layout
