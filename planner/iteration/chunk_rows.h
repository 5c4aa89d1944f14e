// In which order the chunks that a plan keeps lie in the slab, and how far apart: what is free between the blocks of
// one and of the next is a hole of the layout, of use only to blocks that fit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace memopt::planner {

// A chunk, and what of it is free at its beginning and at its end.
struct ChunkEnds {
  std::uint64_t address;
  std::uint64_t before;
  std::uint64_t behind;
};

struct PlacedChunk {
  std::uint64_t address;
  std::uint64_t chunks_before;  // that lie between the one before, or the beginning, and it
};

// Without chunks between: what is free at the end of one goes on in the next, the largest of one with the largest of
// the other. Free bytes follow the last one: there is most behind it. O(n log n) but for ends of equal size.
std::vector<PlacedChunk> tight_rows(std::span<const ChunkEnds> chunks);

// With as many between as make holes that blocks of `sizes` fill: of those that are live when the load is highest, each
// once. Greedy, the hole of which least is left over first; sums of sizes by the textbook's programme for making
// change. Of up to kRowOfChunks at a time, so that it takes O(n) for many. Deterministic.
inline constexpr std::size_t kRowOfChunks = 64;
std::vector<PlacedChunk> spaced_rows(std::span<const ChunkEnds> chunks, std::uint64_t chunk_bytes,
                                     std::span<const std::uint64_t> sizes);

}  // namespace memopt::planner
