// Internal to planner/layout/published: the buffers placed so far, by offset; which bytes are taken while another
// buffer is needed.
//
// A list of short buckets, each with the range of times that it covers. A query scans all buckets that overlap it in
// time: O(n) with a small constant (four entries an instruction), and the answer needs no sorting; for tens of
// thousands of buffers that is faster than an interval tree, whose answers have to be sorted.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

class OccupiedSpace {
 public:
  explicit OccupiedSpace(const Problem& problem);

  // [bottom, top) is taken while the buffer is needed. O(sqrt n) or so.
  void take(std::size_t buffer, std::uint64_t bottom, std::uint64_t top);

  // Calls `visit(bottom, top)` for what is taken at any time at which the buffer is needed, bottoms ascending. `visit`
  // returns the highest top so far, so that what ends below may be skipped; kAnywhere ends the visit.
  template <typename Visit>
  void visit(std::size_t buffer, Visit&& visit) const;

 private:
  static constexpr std::size_t kGroup = 16;
  static constexpr std::size_t kEntries = 512;

  // Ranks of times. Signed 32 bits: SSE2 compares four at once.
  struct TimeRange {
    std::int32_t begin;
    std::int32_t end;
  };

  struct Bucket {
    alignas(16) std::array<std::int32_t, kEntries> begin;  // behind `size`: overlaps no time
    alignas(16) std::array<std::int32_t, kEntries> end;
    std::array<std::uint64_t, kEntries> bottom;
    std::array<std::uint64_t, kEntries> top;
    std::size_t size = 0;
    TimeRange hull{INT32_MAX, INT32_MIN};
    std::uint64_t highest = 0;  // top

    Bucket();
    void insert(std::size_t at, TimeRange range, std::uint64_t its_bottom, std::uint64_t its_top);
    // A bit for each entry of a group that overlaps the range.
    unsigned overlapping(std::size_t group, TimeRange range) const;
  };

  void insert(TimeRange range, std::uint64_t bottom, std::uint64_t top);

  const Problem& problem_;
  std::vector<TimeRange> ranges_;  // of the problem's intervals
  std::vector<std::unique_ptr<Bucket>> buckets_;
};

inline unsigned OccupiedSpace::Bucket::overlapping(std::size_t group, TimeRange range) const {
  const __m128i from = _mm_set1_epi32(range.begin);
  const __m128i to = _mm_set1_epi32(range.end);
  const auto four = [&](std::size_t at) {
    const auto begins = _mm_load_si128(reinterpret_cast<const __m128i*>(&begin[at]));
    const auto ends = _mm_load_si128(reinterpret_cast<const __m128i*>(&end[at]));
    return _mm_and_si128(_mm_cmplt_epi32(begins, to), _mm_cmpgt_epi32(ends, from));
  };
  const __m128i lower = _mm_packs_epi32(four(group), four(group + 4));
  const __m128i upper = _mm_packs_epi32(four(group + 8), four(group + 12));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(lower, upper)));
}

template <typename Visit>
void OccupiedSpace::visit(std::size_t buffer, Visit&& visit) const {
  const Buffer& it = problem_.buffers[buffer];
  const TimeRange* const first = ranges_.data() + it.first;
  const TimeRange* const last = first + it.count - 1;
  const TimeRange hull{first->begin, last->end};
  std::uint64_t highest = 0;
  for (const auto& bucket : buckets_) {
    if (bucket->highest <= highest || bucket->hull.begin >= hull.end || bucket->hull.end <= hull.begin) continue;
    for (std::size_t group = 0; group < bucket->size; group += kGroup) {
      for (unsigned overlapping = bucket->overlapping(group, hull); overlapping != 0; overlapping &= overlapping - 1) {
        const std::size_t i = group + static_cast<std::size_t>(std::countr_zero(overlapping));
        if (first != last && std::none_of(first, last + 1, [&](TimeRange range) {
              return bucket->begin[i] < range.end && range.begin < bucket->end[i];
            })) {
          continue;
        }
        highest = visit(bucket->bottom[i], bucket->top[i]);
        if (highest == kAnywhere) return;
      }
    }
  }
}

}  // namespace memopt::layout
