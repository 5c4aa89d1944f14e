// Chunks of device memory in which blocks that stay have only a part: plans place other blocks in what is free of them.
// Such a chunk lies in the slab where the plan says, with the bytes of the blocks that stay left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace memopt::planner {

struct KeptChunk {
  std::uint64_t address;  // at which it is mapped for the blocks in it
  std::uint64_t offset;   // in the slab

  bool operator==(const KeptChunk&) const = default;
};

// A block that stays, outside the slab.
struct StayingBlock {
  std::uint64_t address;
  std::uint64_t bytes;
};

struct KeptBytes {
  std::vector<KeptChunk> chunks;
  // Bytes of blocks in them, by offset in the slab; no two overlap.
  struct Piece {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;  // that blocks have in them, as the program asked
};

// Chunks in which a good part is free, behind `known`, which keep their offsets, at `free_from` (rounded up to chunks)
// and later; not those of `left_out`. With `sizes`, those of blocks that are live together, they lie so far apart that
// these fit between them (spaced_rows), else in a row (tight_rows). Deterministic.
KeptBytes keep_chunks(std::span<const StayingBlock> blocks, std::uint64_t chunk_bytes, std::span<const KeptChunk> known,
                      std::uint64_t free_from, std::span<const std::uint64_t> sizes = {},
                      std::span<const KeptChunk> left_out = {});

}  // namespace memopt::planner
