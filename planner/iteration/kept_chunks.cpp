#include "planner/iteration/kept_chunks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

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
  bool has_block = false;   // and not only the room behind one

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
    // An agent leaves a byte behind a block, so that a pointer to its end is its own; in a chunk of its own it need
    // not.
    const std::uint64_t room = round_up(end + 1, shm::kPlanAlignment);
    // Chunks between the first and the last are full.
    std::uint64_t last = ~std::uint64_t{0};
    for (const std::uint64_t byte : {begin, end - 1, room - 1}) {
      const std::uint64_t at = byte / chunk_bytes * chunk_bytes;
      if (std::exchange(last, at) == at) continue;
      Contents& contents = chunks[at];
      contents.parts.push_back({std::max(begin, at) - at, std::min(room, at + chunk_bytes) - at});
      const std::uint64_t from = std::max(block.address, at);
      const std::uint64_t to = std::min(end, at + chunk_bytes);
      if (from >= to) continue;
      contents.bytes += to - from;
      contents.has_block = true;
    }
  }
  for (auto& [address, contents] : chunks) join(&contents.parts);
  return chunks;
}

// What of a chunk is free at its beginning and at its end.
struct Ends {
  std::uint64_t address;
  std::uint64_t before;
  std::uint64_t behind;
};

// Their addresses in an order in which what is free at the end of one goes on in the next, the largest of one with the
// largest of the other. Free bytes follow the last one: there is most behind it.
std::vector<std::uint64_t> in_rows(const std::vector<Ends>& chunks) {
  constexpr std::size_t kNone = ~std::size_t{0};
  const std::size_t n = chunks.size();
  std::vector<std::size_t> by_before(n);
  std::iota(by_before.begin(), by_before.end(), std::size_t{0});
  std::vector<std::size_t> by_behind = by_before;
  std::stable_sort(by_before.begin(), by_before.end(),
                   [&](std::size_t a, std::size_t b) { return chunks[a].before > chunks[b].before; });
  std::stable_sort(by_behind.begin(), by_behind.end(),
                   [&](std::size_t a, std::size_t b) { return chunks[a].behind > chunks[b].behind; });
  std::vector<std::size_t> next(n, kNone);
  std::vector<std::size_t> last(n);   // of the row that begins with it
  std::vector<std::size_t> first(n);  // of the row that ends with it
  std::iota(last.begin(), last.end(), std::size_t{0});
  first = last;
  std::vector<bool> follows(n, false);
  // The first of `by_behind` stays for the end.
  auto from = by_before.begin();
  for (std::size_t i = 1; i < n && chunks[by_behind[i]].behind != 0; ++i) {
    const std::size_t one = by_behind[i];
    while (from != by_before.end() && follows[*from]) ++from;
    const auto other = std::find_if(from, by_before.end(), [&](std::size_t at) {
      return !follows[at] && at != first[one] && chunks[at].before != 0;
    });
    if (other == by_before.end()) break;
    next[one] = *other;
    follows[*other] = true;
    const std::size_t begin = first[one];
    const std::size_t end = last[*other];
    last[begin] = end;
    first[end] = begin;
  }
  std::vector<std::uint64_t> order;
  const auto add_row = [&](std::size_t at) {
    for (; at != kNone; at = next[at]) order.push_back(chunks[at].address);
  };
  const std::size_t at_end = n == 0 ? kNone : first[by_behind[0]];
  for (std::size_t i = 0; i < n; ++i) {
    if (!follows[i] && i != at_end) add_row(i);
  }
  add_row(at_end);
  return order;
}

}  // namespace

KeptBytes keep_chunks(std::span<const StayingBlock> blocks, std::uint64_t chunk_bytes, std::span<const KeptChunk> known,
                      std::uint64_t free_from) {
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
  std::vector<Ends> added;
  for (const auto& [address, contents] : chunks) {
    if (offsets.contains(address) || !contents.has_block) continue;
    if (contents.free(chunk_bytes) < chunk_bytes / kWorthwhilePart) continue;
    added.push_back({address, contents.parts.front().begin, contents.free_behind(chunk_bytes)});
  }
  for (const std::uint64_t address : in_rows(added)) {
    kept.chunks.push_back({address, next});
    offsets.emplace(address, next);
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
