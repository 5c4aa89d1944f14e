// The program's live blocks that memopt serves, by address.
//
// Not thread-safe: guarded by the arena's lock. No allocation while there is room; grow() makes room on cold paths.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "agent/memory/use_history.h"
#include "agent/order/ownership.h"
#include "agent/process/open_table.h"

namespace memopt::agent {

struct Window;

struct Block {
  // What each operation that names it looks at or changes, together.
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;  // as the program asked
  Span* span = nullptr;     // that it owns
  // Streams whose further work is behind the former owners of the bytes, a bit per slot; the last is set only with all
  // others, and stands for all further slots. Of the table as it was at `ready_at` (StreamTable::reuses).
  std::uint64_t ready = 0;
  std::uint64_t ready_at = 0;
  std::uint64_t touched = 0;  // by which of all operations, the last time (Operation::ticket)
  Release uses;               // its own, since it left the device the last time
  std::uint32_t away = 0;     // chunks' worth of its bytes that are not on the device, or on their way

  std::uint64_t number = 0;     // shm/record.h; never used twice
  Window* window = nullptr;     // in which it lies
  std::uint64_t born = 0;       // `touched`, when it was served outside a plan
  Release former;               // the former owners' uses
  CUmemoryPool pool = nullptr;  // by cuMemAllocAsync: of which pool
  bool escaped = false;         // its address is stored where launches do not show it
  bool sync_memops = false;     // as cuPointerSetAttribute
  bool kept = false;            // named by a graph: its bytes stay its own for as long, even after it is freed
  bool stays = false;           // the user wants it here (MEMOPT_PIN)
  // Where it is `kept`: between which captures it was named (graph_names.h).
  std::uint64_t named_first = 0;
  std::uint64_t named_last = 0;
  UseHistory history;  // while there is a limit
  Block* next_free = nullptr;
};

// Its address is stored, a graph names it, its chunks have an attribute that others would lack, or the user has said
// so: it does not leave.
inline bool is_pinned(const Block& block) noexcept {
  return block.escaped || block.kept || block.sync_memops || block.stays;
}

class BlockIndex {
 public:
  BlockIndex() = default;
  BlockIndex(const BlockIndex&) = delete;
  BlockIndex& operator=(const BlockIndex&) = delete;
  ~BlockIndex();

  // Makes sure that one more block can be inserted; false when out of memory.
  bool reserve_one() noexcept { return (spare_ != nullptr || make_more()) && table_.reserve_one(); }

  // A block with nothing set but its number; after reserve_one().
  Block* make() noexcept {
    Block* const block = spare_;
    spare_ = block->next_free;
    block->number = ++last_number_;
    block->former = {};
    block->uses = {};
    block->span = nullptr;
    block->away = 0;
    block->pool = nullptr;
    block->escaped = false;
    block->kept = false;
    block->sync_memops = false;
    block->stays = false;
    block->history.clear();
    return block;
  }
  // It was never inserted, or was erased.
  void drop(Block* block) noexcept {
    block->next_free = spare_;
    spare_ = block;
  }

  void insert(Block* block) noexcept { table_.insert({block->base, block}); }
  Block* find(std::uint64_t base) const noexcept {
    const Slot* const slot = table_.find(base);
    return slot != nullptr ? slot->block : nullptr;
  }
  // It must be there.
  void erase(std::uint64_t base) noexcept { table_.erase(table_.find(base)); }

  // All of them are dropped.
  void clear() noexcept;

  // Numbers are never used twice in a process: another index goes on behind this one's.
  std::uint64_t last_number() const { return last_number_; }
  void number_behind(std::uint64_t number) { last_number_ = number; }

  std::size_t size() const { return table_.size(); }
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (const Slot& slot : table_.slots()) {
      if (slot.key != 0) visit(*slot.block);
    }
  }

 private:
  struct Slot {
    std::uint64_t key = 0;  // its base
    Block* block = nullptr;

    static std::size_t home(std::uint64_t base) noexcept {
      return static_cast<std::size_t>(((base >> 9) * 0x9e3779b97f4a7c15u) >> 32);
    }
  };
  bool make_more() noexcept;

  OpenTable<Slot> table_;
  std::uint64_t last_number_ = 0;
  Block* spare_ = nullptr;
  struct Array;
  Array* owned_ = nullptr;
};

}  // namespace memopt::agent
