#include "planner/iteration/kept_chunks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/iteration/chunk_rows.h"
#include "shm/plan.h"

namespace memopt::planner {
namespace {

// A chunk of which less than this part is free is left as it is: each that is kept makes the layout harder.
constexpr std::uint64_t kWorthwhilePart = 16;

// Of addresses and sizes: what comes from a program may be anything.
constexpr std::uint64_t kMost = std::uint64_t{1} << 60;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// [begin, end) of a chunk.
struct Part {
  std::uint64_t begin;
  std::uint64_t end;
};

struct Contents {
  std::vector<Part> parts;  // by begin, joined
  std::uint64_t bytes = 0;  // of blocks, as asked

  std::uint64_t free(std::uint64_t chunk_bytes) const {
    std::uint64_t sum = chunk_bytes;
    for (const Part& part : parts) sum -= part.end - part.begin;
    return sum;
  }
  std::uint64_t free_behind(std::uint64_t chunk_bytes) const { return chunk_bytes - parts.back().end; }
};

using Chunks = std::map<std::uint64_t, Contents>;  // by address

void join(std::vector<Part>* parts) {
  std::sort(parts->begin(), parts->end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  std::vector<Part> joined;
  for (const Part& part : *parts) {
    if (!joined.empty() && part.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, part.end);
    } else {
      joined.push_back(part);
    }
  }
  *parts = std::move(joined);
}

Chunks contents_of(std::span<const StayingBlock> blocks, std::uint64_t chunk_bytes) {
  Chunks chunks;
  for (const StayingBlock& block : blocks) {
    if (block.bytes == 0 || block.bytes > kMost || block.address > kMost) continue;
    const std::uint64_t begin = block.address / shm::kPlanAlignment * shm::kPlanAlignment;
    const std::uint64_t end = block.address + block.bytes;
    const std::uint64_t room = round_up(end, shm::kPlanAlignment);
    // Chunks between the first and the last are full.
    std::uint64_t last = ~std::uint64_t{0};
    for (const std::uint64_t byte : {begin, end - 1}) {
      const std::uint64_t at = byte / chunk_bytes * chunk_bytes;
      if (std::exchange(last, at) == at) continue;
      Contents& contents = chunks[at];
      contents.parts.push_back({std::max(begin, at) - at, std::min(room, at + chunk_bytes) - at});
      contents.bytes += std::min(end, at + chunk_bytes) - std::max(block.address, at);
    }
  }
  for (auto& [address, contents] : chunks) join(&contents.parts);
  return chunks;
}

}  // namespace

KeptBytes keep_chunks(std::span<const StayingBlock> blocks, std::uint64_t chunk_bytes, std::span<const KeptChunk> known,
                      std::uint64_t free_from, std::span<const std::uint64_t> sizes,
                      std::span<const KeptChunk> left_out) {
  KeptBytes kept;
  if (chunk_bytes == 0) return kept;
  const Chunks chunks = contents_of(blocks, chunk_bytes);
  kept.chunks.assign(known.begin(), known.end());
  std::uint64_t next = round_up(free_from, chunk_bytes);
  std::map<std::uint64_t, std::uint64_t> offsets;
  for (const KeptChunk& chunk : known) {
    next = std::max(next, chunk.offset + chunk_bytes);
    offsets.emplace(chunk.address, chunk.offset);
  }
  std::vector<ChunkEnds> added;
  for (const auto& [address, contents] : chunks) {
    if (offsets.contains(address)) continue;
    const auto is_its = [address = address](const KeptChunk& chunk) { return chunk.address == address; };
    if (std::any_of(left_out.begin(), left_out.end(), is_its)) continue;
    if (contents.free(chunk_bytes) < chunk_bytes / kWorthwhilePart) continue;
    added.push_back({address, contents.parts.front().begin, contents.free_behind(chunk_bytes)});
  }
  for (const PlacedChunk& chunk : sizes.empty() ? tight_rows(added) : spaced_rows(added, chunk_bytes, sizes)) {
    next += chunk.chunks_before * chunk_bytes;
    kept.chunks.push_back({chunk.address, next});
    offsets.emplace(chunk.address, next);
    next += chunk_bytes;
  }
  for (const auto& [address, offset] : offsets) {
    const auto found = chunks.find(address);
    if (found == chunks.end()) continue;
    kept.bytes += found->second.bytes;
    for (const Part& part : found->second.parts) kept.pieces.push_back({offset + part.begin, part.end - part.begin});
  }
  std::sort(kept.pieces.begin(), kept.pieces.end(),
            [](const KeptBytes::Piece& a, const KeptBytes::Piece& b) { return a.offset < b.offset; });
  return kept;
}

}  // namespace memopt::planner
