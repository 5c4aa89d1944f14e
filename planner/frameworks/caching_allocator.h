// PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, default settings) fed with a program's allocations
// and frees: how many bytes it would have reserved. README.md says what is modelled.
//
// Not thread-safe. Hostile contents are tolerated: blocks that are unknown or there already, sizes without bounds.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

namespace memopt::planner {

class CachingAllocator {
 public:
  // Each O(log n) for n blocks, live and cached.
  void malloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t stream);
  void free(std::uint64_t block);
  // Not all was seen: of the blocks that were live, those are still known to be. The others are freed. O(n log n).
  void keep_only(std::span<const std::uint64_t> blocks);

  // Bytes of all segments: they only grow.
  std::uint64_t reserved() const { return reserved_; }
  std::uint64_t allocated() const { return allocated_; }  // of live blocks, rounded

 private:
  // A part of a segment, by its address. Segments do not touch each other.
  struct Piece {
    std::uint64_t bytes = 0;
    std::uint64_t stream = 0;
    bool small = false;
    bool free = false;
  };
  using Pieces = std::map<std::uint64_t, Piece>;
  // Free pieces, as they are chosen.
  struct Cached {
    bool small = false;
    std::uint64_t stream = 0;
    std::uint64_t bytes = 0;
    std::uint64_t address = 0;
    auto operator<=>(const Cached&) const = default;
  };

  static Cached cached(Pieces::const_iterator piece);
  Pieces::iterator reserve(std::uint64_t bytes, std::uint64_t stream, bool small);
  void split(Pieces::iterator piece, std::uint64_t bytes);

  Pieces pieces_;
  std::set<Cached> cached_;
  std::unordered_map<std::uint64_t, Pieces::iterator> live_;
  std::uint64_t next_segment_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t allocated_ = 0;
};

}  // namespace memopt::planner
