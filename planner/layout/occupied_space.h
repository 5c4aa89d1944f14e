// The buffers placed so far, in order of offset: which bytes are taken while another buffer is needed?
//
// A list of short blocks, each with the times that it spans. A query looks at all entries whose block meets it in time:
// O(n) with a small constant (four entries an instruction), and without sorting what it finds; for tens of thousands of
// buffers that is faster than a tree of intervals whose answers have to be sorted.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/layout/problem.h"

namespace memopt::layout {

class OccupiedSpace {
 public:
  explicit OccupiedSpace(const Problem& problem);

  // [bottom, top) is taken while the buffer is needed. O(sqrt n) or so.
  void take(std::size_t buffer, std::uint64_t bottom, std::uint64_t top);

  // Calls `visit(bottom, top)` for what is taken at any time at which the buffer is needed, bottoms ascending. It
  // returns the highest top that it has seen, and need not be told of what ends below; kAnywhere: it has seen enough.
  template <typename Visit>
  void visit(std::size_t buffer, Visit&& visit) const;

 private:
  static constexpr std::size_t kGroup = 16;
  static constexpr std::size_t kEntries = 512;

  // Ranks of times. 32 bits with sign: what every processor compares four at once.
  struct Span {
    std::int32_t begin;
    std::int32_t end;
  };

  struct Block {
    alignas(16) std::array<std::int32_t, kEntries> begin;  // behind `size`: never met
    alignas(16) std::array<std::int32_t, kEntries> end;
    std::array<std::uint64_t, kEntries> bottom;
    std::array<std::uint64_t, kEntries> top;
    std::size_t size = 0;
    Span hull{INT32_MAX, INT32_MIN};
    std::uint64_t highest = 0;  // top

    Block();
    void insert(std::size_t at, Span span, std::uint64_t its_bottom, std::uint64_t its_top);
    // A bit for each entry of a group that meets the span.
    unsigned met(std::size_t group, Span span) const;
  };

  void insert(Span span, std::uint64_t bottom, std::uint64_t top);

  const Problem& problem_;
  std::vector<Span> spans_;  // of the problem's intervals
  std::vector<std::unique_ptr<Block>> blocks_;
};

inline unsigned OccupiedSpace::Block::met(std::size_t group, Span span) const {
  const __m128i from = _mm_set1_epi32(span.begin);
  const __m128i to = _mm_set1_epi32(span.end);
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
  const Span* const first = spans_.data() + it.first;
  const Span* const last = first + it.count - 1;
  const Span hull{first->begin, last->end};
  std::uint64_t seen = 0;
  for (const auto& block : blocks_) {
    if (block->highest <= seen || block->hull.begin >= hull.end || block->hull.end <= hull.begin) continue;
    for (std::size_t group = 0; group < block->size; group += kGroup) {
      for (unsigned met = block->met(group, hull); met != 0; met &= met - 1) {
        const std::size_t i = group + static_cast<std::size_t>(std::countr_zero(met));
        if (first != last && std::none_of(first, last + 1, [&](Span span) {
              return block->begin[i] < span.end && span.begin < block->end[i];
            })) {
          continue;
        }
        seen = visit(block->bottom[i], block->top[i]);
        if (seen == kAnywhere) return;
      }
    }
  }
}

}  // namespace memopt::layout
