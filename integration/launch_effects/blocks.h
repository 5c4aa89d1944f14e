// The program's live blocks: what it has allocated and not freed. Not thread-safe: the instrument's lock guards it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ranges.h"

namespace launch_effects {

// The same in every run of a program that does the same: the number of the allocating thread, by its first call, and
// the number of the allocation in that thread.
struct BlockId {
  std::uint32_t thread = 0;
  std::uint32_t number = 0;
  auto operator<=>(const BlockId&) const = default;
};

struct Block {
  BlockId id;
  std::uintptr_t address = 0;
  std::size_t size = 0;
  // A fresh block's bytes are whatever was there before, which is another matter in every run: they count from their
  // first writing on.
  Ranges written;

  bool contains(std::uintptr_t word) const { return word - address < size; }
};

class Blocks {
 public:
  void add(Block block);
  void remove(std::uintptr_t address);
  void remove_range(std::uintptr_t address, std::size_t size);  // all that begin there
  void clear();

  Block* at(std::uintptr_t address);  // whose bytes have this address; null for none
  Block* find(BlockId id);

  void wrote(std::uintptr_t address, std::size_t size);
  // What is not written at the source is as little written at the destination.
  void copied(std::uintptr_t to, std::uintptr_t from, std::size_t size);

  std::vector<const Block*> in_order() const;  // of allocation
  std::uint64_t allocated() const { return allocated_; }
  std::uint64_t freed() const { return freed_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::map<std::uintptr_t, Block> by_address_;
  std::map<BlockId, std::uintptr_t> by_id_;
  std::uint64_t allocated_ = 0, freed_ = 0, bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace launch_effects
