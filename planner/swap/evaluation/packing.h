// Places by first fit. Each item, in an order, goes to the lowest offset that none of the items before it which it
// conflicts with has.
//
// Built for search: an attempt differs from what was kept by some items and their order. Only items that can have
// another place than before are looked at. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/evaluation/conflicts.h"

namespace memopt::swap {

class Packing {
 public:
  static constexpr std::uint32_t kGround = ~std::uint32_t{0};
  static constexpr std::uint64_t kTooHigh = ~std::uint64_t{0};

  // An item as it is placed: of several places each is its own all the time.
  struct Shape {
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
    std::uint32_t places = 1;
  };

  explicit Packing(std::size_t items);

  // The height of all items in this order; kTooHigh if it is above `most`. `changed`: items whose shape or conflicts
  // are not what they were when keep() was called last; `dirty`: items that no longer conflict with one of these. The
  // first order must have all items.
  std::uint64_t attempt(const std::vector<std::uint32_t>& order, const std::vector<Shape>& shapes,
                        const Conflicts& conflicts, const std::vector<std::uint32_t>& changed, const ItemSet& dirty,
                        std::uint64_t most);
  // What the last attempt found is where the next one begins.
  void keep();

  // Of what was kept, by item.
  std::uint64_t top(std::uint32_t item) const { return placements_[item].top; }
  std::uint32_t rank(std::uint32_t item) const { return rank_[item]; }               // in the order
  std::uint32_t below(std::uint32_t item) const { return placements_[item].below; }  // what it stands on, or kGround
  const std::vector<std::uint64_t>& places(std::uint32_t item) const { return placements_[item].at; }

 private:
  // Taken bytes by offset; those of an item with several places are all there.
  struct TakenBytes {
    std::vector<std::uint64_t> from, to;
    std::vector<std::uint32_t> item;

    std::size_t find(std::uint64_t begin, std::uint32_t of) const;
    void insert(std::uint64_t begin, std::uint64_t end, std::uint32_t of);
    void erase(std::uint64_t begin, std::uint32_t of);
  };
  struct Placement {
    std::vector<std::uint64_t> at;  // places; empty: none yet
    std::uint64_t top = 0;
    std::uint32_t below = kGround;  // of the last place that needed one
  };
  struct Moved {
    std::uint32_t item = 0;
    Placement place;
  };

  std::size_t begin_with(const std::vector<std::uint32_t>& order, const Conflicts& conflicts,
                         const std::vector<std::uint32_t>& changed, const ItemSet& dirty);
  void place(std::uint32_t item, const Shape& shape, const Conflicts& conflicts);
  std::uint64_t lowest(const Shape& shape, std::uint32_t& below) const;

  std::vector<Placement> placements_;  // by item
  std::vector<std::uint32_t> order_, rank_, new_rank_;
  TakenBytes taken_, new_taken_;
  std::vector<Moved> moved_;  // the first `moves_`: items that were looked at in this attempt
  std::size_t moves_ = 0;
  ItemSet placed_, dirty_, conflicting_;  // of an attempt: placed; perhaps to be placed anew; not to lie on
};

}  // namespace memopt::swap
