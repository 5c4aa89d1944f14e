#include "planner/frameworks/caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <vector>

namespace memopt::planner {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// The names are PyTorch's.
constexpr std::uint64_t kMinBlockSize = 512;
constexpr std::uint64_t kSmallSize = kMiB;
constexpr std::uint64_t kSmallBuffer = 2 * kMiB;
constexpr std::uint64_t kLargeBuffer = 20 * kMiB;
constexpr std::uint64_t kMinLargeAlloc = 10 * kMiB;
constexpr std::uint64_t kRoundLarge = 2 * kMiB;
// No device has as much; sums of so many blocks as there can be stay below 2^64.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 44;
constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 60;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

std::uint64_t segment_bytes(std::uint64_t bytes) {
  if (bytes <= kSmallSize) return kSmallBuffer;
  return bytes < kMinLargeAlloc ? kLargeBuffer : round_up(bytes, kRoundLarge);
}

}  // namespace

CachingAllocator::Cached CachingAllocator::cached(Pieces::const_iterator piece) {
  return {piece->second.small, piece->second.stream, piece->second.bytes, piece->first};
}

CachingAllocator::Pieces::iterator CachingAllocator::reserve(std::uint64_t bytes, std::uint64_t stream, bool small) {
  const auto segment = pieces_.emplace_hint(pieces_.end(), next_segment_, Piece{bytes, stream, small, false});
  next_segment_ += bytes + kMinBlockSize;
  reserved_ += bytes;
  return segment;
}

void CachingAllocator::split(Pieces::iterator piece, std::uint64_t bytes) {
  Piece& taken = piece->second;
  const std::uint64_t rest = taken.bytes - bytes;
  if (taken.small ? rest < kMinBlockSize : rest <= kSmallSize) return;
  const auto behind =
      pieces_.emplace_hint(std::next(piece), piece->first + bytes, Piece{rest, taken.stream, taken.small, true});
  taken.bytes = bytes;
  cached_.insert(cached(behind));
}

void CachingAllocator::malloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t stream) {
  if (bytes == 0 || bytes > kMostBytes || reserved_ > kMostReserved || live_.contains(block)) return;
  const std::uint64_t rounded = round_up(bytes, kMinBlockSize);
  const bool small = rounded <= kSmallSize;
  Pieces::iterator piece;
  const auto best = cached_.lower_bound({small, stream, rounded, 0});
  if (best != cached_.end() && best->small == small && best->stream == stream) {
    piece = pieces_.find(best->address);
    piece->second.free = false;
    cached_.erase(best);
  } else {
    piece = reserve(segment_bytes(rounded), stream, small);
  }
  split(piece, rounded);
  allocated_ += piece->second.bytes;
  live_.emplace(block, piece);
}

void CachingAllocator::free(std::uint64_t block) {
  const auto found = live_.find(block);
  if (found == live_.end()) return;
  auto piece = found->second;
  live_.erase(found);
  allocated_ -= piece->second.bytes;
  piece->second.free = true;
  const auto join = [this](Pieces::iterator first, Pieces::iterator second) {
    first->second.bytes += second->second.bytes;
    pieces_.erase(second);
    return first;
  };
  const auto touch = [](Pieces::iterator first, Pieces::iterator second) {
    return first->first + first->second.bytes == second->first;
  };
  if (const auto behind = std::next(piece); behind != pieces_.end() && behind->second.free && touch(piece, behind)) {
    cached_.erase(cached(behind));
    piece = join(piece, behind);
  }
  if (piece != pieces_.begin()) {
    if (const auto before = std::prev(piece); before->second.free && touch(before, piece)) {
      cached_.erase(cached(before));
      piece = join(before, piece);
    }
  }
  cached_.insert(cached(piece));
}

void CachingAllocator::keep_only(std::span<const std::uint64_t> blocks) {
  const std::unordered_set<std::uint64_t> kept(blocks.begin(), blocks.end());
  std::vector<std::uint64_t> gone;
  for (const auto& [block, piece] : live_) {
    if (!kept.contains(block)) gone.push_back(block);
  }
  // In an order that does not depend on the table's.
  std::sort(gone.begin(), gone.end());
  for (const std::uint64_t block : gone) free(block);
}

}  // namespace memopt::planner
