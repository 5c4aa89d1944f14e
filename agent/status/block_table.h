// The program's live device blocks: address -> size, and the sums over them.
//
// Any thread. Sharded, each shard a small lock held for a few instructions over open addressing; the table grows by
// mapping memory and never calls the program's malloc. A pointer that is not here is not an error: memory that the
// program got by ways we do not see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/process/open_table.h"
#include "shm/status.h"
#include "shm/units.h"

namespace memopt::agent {

using DeviceAddress = std::uint64_t;

// Live and largest sum of bytes, shared by everything that holds device memory.
class MemoryGauge {
 public:
  constexpr MemoryGauge() = default;
  void add(shm::Bytes bytes) noexcept;
  void remove(shm::Bytes bytes) noexcept;
  void count_untracked() noexcept;
  shm::MemoryStatus read() const noexcept;
  void reset() noexcept;

 private:
  // Plain words under __atomic builtins, so that the object is trivially destructible and can be reset in a forked
  // child.
  std::uint64_t live_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t untracked_ = 0;
};

class BlockTable {
 public:
  constexpr explicit BlockTable(MemoryGauge& gauge) : gauge_(gauge) {}
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // After the driver returned the block. A block already at that address was freed behind our back, and is replaced.
  void insert(DeviceAddress address, shm::Bytes size) noexcept;

  // Before the driver frees the block: by the time the driver has freed it, another thread may be given the same
  // address. Returns whether it was there; `size` is for insert(), should the driver refuse.
  bool erase(DeviceAddress address, shm::Bytes* size) noexcept;

  // Calls visit(address, size) for each block of a snapshot, without holding a lock: visit may ask the driver.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < kShards; ++i) {
      const std::span<Slot> copy = copy_shard(i);
      for (const Slot& slot : copy) {
        if (slot.key != 0) visit(slot.key, shm::Bytes(slot.size));
      }
      drop_copy(copy);
    }
  }

  // In a forked child (one thread, locks in any state): empty again. The gauge is reset by its owner.
  void reset_after_fork() noexcept;

 private:
  struct Slot {
    DeviceAddress key = 0;
    std::uint64_t size = 0;

    static std::size_t home(DeviceAddress address) noexcept { return hash(address) / kShards; }
  };
  struct alignas(64) Shard {
    int lock = 0;
    OpenTable<Slot> blocks;
  };
  static constexpr std::size_t kShards = 16;

  // Blocks are aligned to 256 bytes or more, so the low bits say nothing: Fibonacci hashing takes the high ones of the
  // product.
  static std::size_t hash(DeviceAddress address) noexcept { return (address * 0x9E3779B97F4A7C15ull) >> 20; }
  std::span<Slot> copy_shard(std::size_t index) noexcept;
  static void drop_copy(std::span<Slot> copy) noexcept;

  MemoryGauge& gauge_;
  Shard shards_[kShards];
};

}  // namespace memopt::agent
