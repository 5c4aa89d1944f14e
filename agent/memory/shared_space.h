// The bytes of a window that blocks smaller than a chunk share, and where in it there is room: the lowest run of free
// bytes that is large enough (first fit by address, which fragments as little as best fit does: Johnstone and Wilson,
// The Memory Fragmentation Problem: Solved?, 1998). Neighbouring free spans count as one run, without being joined:
// each keeps its own last uses.
//
// A bit for each unit of 512 bytes says whether it is free, and a tree over words of such bits (a segment tree: free
// units at both ends of a piece, and the longest run in it) leads to the place. A bit for each unit at which a span
// begins leads from an address to its span. So a taking, a giving back and a search by address take O(log of the
// window's bytes) whatever the blocks are, nothing is allocated but spans, and it comes to about 6 KiB per 2 MiB.
//
// Beside the ownership map, which is also the slab's and must stay as cheap as it is there.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/order/ownership.h"
#include "shm/plan.h"

namespace memopt::agent {

class SharedSpace {
 public:
  // A map of which nothing is owned; from now on it changes only through this. Throws std::bad_alloc.
  explicit SharedSpace(OwnershipMap& map);
  SharedSpace(const SharedSpace&) = delete;
  SharedSpace& operator=(const SharedSpace&) = delete;

  // Of the longest run of free bytes.
  std::uint64_t largest() const { return nodes_[1].longest * kUnit; }

  // Makes the first `bytes` (a multiple of 512) of the lowest run that is large enough the owner's, and adds their last
  // uses to `former`. Null, and nothing has changed, if there is none, or no host memory.
  Span* take(std::uint64_t bytes, Block* owner, Release* former) noexcept;
  // Likewise [begin, end), multiples of 512 of which nothing is owned.
  Span* take_at(std::uint64_t begin, std::uint64_t end, Block* owner, Release* former) noexcept;
  void give_back(Span* span, const Release& release) noexcept;

  // The span in which `offset` lies; null beyond the end.
  Span* find(std::uint64_t offset) const noexcept;

  // All last uses, where nothing is owned. Asked again before the next taking it does not look at each span again.
  const Release& last_uses() noexcept;

 private:
  static constexpr std::uint64_t kUnit = shm::kPlanAlignment;
  static constexpr std::uint32_t kBucket = 8;  // units

  // Of a piece of the window, in units.
  struct Runs {
    std::uint32_t prefix = 0;  // free from its begin on
    std::uint32_t suffix = 0;  // free up to its end
    std::uint32_t longest = 0;
    bool operator==(const Runs&) const = default;
  };

  static Runs runs_of(std::uint64_t word) noexcept;
  Runs runs(std::uint32_t node) const noexcept {
    return node < leaves_ ? nodes_[node] : runs_of(free_[node - leaves_]);
  }
  std::uint32_t find_run(std::uint32_t units) const noexcept;
  void refresh(std::uint32_t begin, std::uint32_t end) noexcept;
  Span* span_at(std::uint32_t begin) const noexcept;
  Span* take_units(std::uint32_t begin, std::uint32_t end, Span* first, Block* owner, Release* former) noexcept;
  void note_begin(std::uint32_t unit, Span* span) noexcept;

  OwnershipMap& map_;
  std::uint32_t units_ = 0;
  std::uint32_t leaves_ = 0;           // words, rounded up to a power of two
  std::vector<std::uint64_t> free_;    // a bit per unit
  std::vector<std::uint64_t> begins_;  // a bit per unit
  std::vector<Runs> nodes_;      // of the tree, from 1 on; the children of i are 2i and 2i + 1, the last are words
  std::vector<Span*> first_of_;  // per eight units: the first span that begins there, if one does
  Release last_uses_;
  bool knows_last_uses_ = false;
};

}  // namespace memopt::agent
