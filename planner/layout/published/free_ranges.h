// Internal to planner/layout/published: the free ranges of an allocator, by size and by place.
//
// Segregated fits (Masmano, Ripoll, Crespo, Real, "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", ECRTS
// 2004): lists of free ranges by size, 64 for each power of two, and neighbours that know each other, so that taking
// and giving are O(1). Of the eight that are looked at in a request's own list the smallest that is large enough is
// taken, else the first that is found in the lists of larger ones.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

// Addresses from 0 up to a top that grows as needed.
class FreeRanges {
 public:
  using Range = std::uint32_t;

  explicit FreeRanges(std::size_t most_taken) {
    heads_.fill(kNone);
    ranges_.reserve(most_taken + 1);
  }

  // Nobody gets [begin, end). Called with ascending begins, before all else; they may overlap.
  void reserve(std::uint64_t begin, std::uint64_t end) {
    if (end <= top_) return;
    if (begin > top_) append_free(begin - top_);
    const std::uint64_t from = top_;
    append({from, end - from, last_, kNone, kNone, kNone, false});
    top_ = end;
  }

  Range take(std::uint64_t bytes, std::uint64_t alignment) {
    const Range found = find(bytes, alignment);
    return found != kNone ? cut(found, bytes, alignment) : grow(bytes, alignment);
  }
  std::uint64_t begin_of(Range range) const { return ranges_[range].begin; }

  void give(Range range) {
    if (const Range next = ranges_[range].next; next != kNone && ranges_[next].is_free) {
      unlist(next);
      join(range, next);
    }
    if (const Range previous = ranges_[range].previous; previous != kNone && ranges_[previous].is_free) {
      unlist(previous);
      join(previous, range);
      range = previous;
    }
    list(range);
  }

 private:
  static constexpr Range kNone = ~Range{0};
  static constexpr unsigned kPartsLog2 = 6;
  static constexpr unsigned kParts = 1u << kPartsLog2;  // of each power of two
  static constexpr unsigned kLookedAt = 8;              // of a list

  struct Segment {
    std::uint64_t begin, bytes;
    Range previous, next;                // by place
    Range previous_listed, next_listed;  // of those free
    bool is_free;
  };

  // Sizes below kParts have lists of their own.
  static unsigned list_of(std::uint64_t bytes) {
    const unsigned log2 = static_cast<unsigned>(std::bit_width(bytes)) - 1;
    if (log2 < kPartsLog2) return static_cast<unsigned>(bytes);
    return ((log2 - kPartsLog2 + 1) << kPartsLog2) + static_cast<unsigned>((bytes >> (log2 - kPartsLog2)) % kParts);
  }

  bool fits(const Segment& range, std::uint64_t bytes, std::uint64_t alignment) const {
    const std::uint64_t before = align_up(range.begin, alignment) - range.begin;
    return range.bytes >= bytes && range.bytes - bytes >= before;
  }

  // The first list from `list` on that has a range, or kLists.
  unsigned next_list(unsigned list) const {
    if (list >= kLists) return kLists;
    unsigned word = list / 64;
    std::uint64_t bits = used_[word] & (~std::uint64_t{0} << list % 64);
    while (bits == 0) {
      if (++word == used_.size()) return kLists;
      bits = used_[word];
    }
    return word * 64 + static_cast<unsigned>(std::countr_zero(bits));
  }

  Range find(std::uint64_t bytes, std::uint64_t alignment) const {
    const unsigned own = list_of(bytes);
    for (unsigned list = next_list(own); list < kLists; list = next_list(list + 1)) {
      Range best = kNone;
      Range range = heads_[list];
      for (unsigned looked_at = 0; range != kNone && looked_at < kLookedAt; ++looked_at) {
        const Segment& its = ranges_[range];
        if (fits(its, bytes, alignment) && (best == kNone || its.bytes < ranges_[best].bytes)) best = range;
        if (list != own && best != kNone) break;
        range = its.next_listed;
      }
      if (best != kNone) return best;
    }
    return kNone;
  }

  // The part of a free range that is taken; the rest stays free.
  Range cut(Range range, std::uint64_t bytes, std::uint64_t alignment) {
    unlist(range);
    const std::uint64_t before = align_up(ranges_[range].begin, alignment) - ranges_[range].begin;
    if (before != 0) {
      const Range rest = split(range, before);
      list(range);
      range = rest;
    }
    if (ranges_[range].bytes > bytes) list(split(range, bytes));
    return range;
  }

  Range grow(std::uint64_t bytes, std::uint64_t alignment) {
    if (last_ == kNone || !ranges_[last_].is_free) {
      const std::uint64_t before = align_up(top_, alignment) - top_;
      if (before != 0) append_free(before);
      const std::uint64_t from = top_;
      top_ += bytes;
      return append({from, bytes, last_, kNone, kNone, kNone, false});
    }
    // What is free below the top is its beginning.
    const Range range = last_;
    const std::uint64_t begin = ranges_[range].begin;
    const std::uint64_t end = align_up(begin, alignment) + bytes;
    unlist(range);
    ranges_[range].bytes = end - begin;
    list(range);
    top_ = end;
    return cut(range, bytes, alignment);
  }

  // The upper part becomes a range of its own, not listed.
  Range split(Range range, std::uint64_t bytes) {
    const Segment whole = ranges_[range];
    const Range rest = add({whole.begin + bytes, whole.bytes - bytes, range, whole.next, kNone, kNone, false});
    ranges_[range].bytes = bytes;
    ranges_[range].next = rest;
    (whole.next == kNone ? last_ : ranges_[whole.next].previous) = rest;
    return rest;
  }

  void join(Range range, Range next) {
    ranges_[range].bytes += ranges_[next].bytes;
    const Range behind = ranges_[next].next;
    ranges_[range].next = behind;
    (behind == kNone ? last_ : ranges_[behind].previous) = range;
    unused_.push_back(next);
  }

  void append_free(std::uint64_t bytes) {
    const std::uint64_t from = top_;
    top_ += bytes;
    list(append({from, bytes, last_, kNone, kNone, kNone, false}));
  }
  Range append(const Segment& segment) {
    const Range added = add(segment);
    if (last_ != kNone) ranges_[last_].next = added;
    return last_ = added;
  }
  Range add(const Segment& segment) {
    if (unused_.empty()) {
      ranges_.push_back(segment);
      return static_cast<Range>(ranges_.size() - 1);
    }
    const Range range = unused_.back();
    unused_.pop_back();
    ranges_[range] = segment;
    return range;
  }

  void list(Range range) {
    const unsigned its = list_of(ranges_[range].bytes);
    ranges_[range].is_free = true;
    ranges_[range].previous_listed = kNone;
    ranges_[range].next_listed = heads_[its];
    if (heads_[its] != kNone) ranges_[heads_[its]].previous_listed = range;
    heads_[its] = range;
    used_[its / 64] |= std::uint64_t{1} << its % 64;
  }
  void unlist(Range range) {
    const unsigned its = list_of(ranges_[range].bytes);
    const Segment& segment = ranges_[range];
    (segment.previous_listed == kNone ? heads_[its] : ranges_[segment.previous_listed].next_listed) =
        segment.next_listed;
    if (segment.next_listed != kNone) ranges_[segment.next_listed].previous_listed = segment.previous_listed;
    if (heads_[its] == kNone) used_[its / 64] &= ~(std::uint64_t{1} << its % 64);
    ranges_[range].is_free = false;
  }

  static constexpr unsigned kLists = (64 - kPartsLog2 + 1) << kPartsLog2;
  std::array<Range, kLists> heads_;
  std::array<std::uint64_t, kLists / 64> used_{};  // a bit for each list that has a range
  std::vector<Segment> ranges_;
  std::vector<Range> unused_;
  Range last_ = kNone;
  std::uint64_t top_ = 0;
};

}  // namespace memopt::layout
