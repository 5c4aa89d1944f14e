#include "agent/status/block_table.h"

#include <sys/mman.h>

#include <cstring>

#include "agent/process/spin_lock.h"

namespace memopt::agent {

void MemoryGauge::add(shm::Bytes bytes) noexcept {
  __atomic_fetch_add(&blocks_, 1, __ATOMIC_RELAXED);
  const std::uint64_t live = __atomic_add_fetch(&live_, bytes.value(), __ATOMIC_RELAXED);
  std::uint64_t peak = __atomic_load_n(&peak_, __ATOMIC_RELAXED);
  while (peak < live && !__atomic_compare_exchange_n(&peak_, &peak, live, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void MemoryGauge::remove(shm::Bytes bytes) noexcept {
  __atomic_fetch_sub(&blocks_, 1, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&live_, bytes.value(), __ATOMIC_RELAXED);
}

void MemoryGauge::count_untracked() noexcept { __atomic_fetch_add(&untracked_, 1, __ATOMIC_RELAXED); }

shm::MemoryStatus MemoryGauge::read() const noexcept {
  shm::MemoryStatus status;
  status.live = shm::Bytes(__atomic_load_n(&live_, __ATOMIC_RELAXED));
  status.peak = shm::Bytes(__atomic_load_n(&peak_, __ATOMIC_RELAXED));
  status.blocks = shm::BlockCount(__atomic_load_n(&blocks_, __ATOMIC_RELAXED));
  status.untracked = __atomic_load_n(&untracked_, __ATOMIC_RELAXED);
  return status;
}

void MemoryGauge::reset() noexcept {
  __atomic_store_n(&live_, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&peak_, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&blocks_, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&untracked_, 0, __ATOMIC_RELAXED);
}

namespace {

constexpr std::size_t kFirstCapacity = 256;

void* map(std::size_t bytes) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

// Blocks are aligned to 256 bytes or more, so the low bits say nothing: Fibonacci hashing takes the high ones of the
// product.
std::size_t BlockTable::hash(DeviceAddress address) noexcept { return (address * 0x9E3779B97F4A7C15ull) >> 20; }

BlockTable::Slot* BlockTable::find(Shard& shard, DeviceAddress address) noexcept {
  if (shard.capacity == 0) return nullptr;
  const std::size_t mask = shard.capacity - 1;
  for (std::size_t i = (hash(address) / kShards) & mask; shard.slots[i].address != 0; i = (i + 1) & mask) {
    if (shard.slots[i].address == address) return &shard.slots[i];
  }
  return nullptr;
}

bool BlockTable::grow(Shard& shard) noexcept {
  const std::size_t capacity = shard.capacity == 0 ? kFirstCapacity : shard.capacity * 2;
  Slot* const slots = static_cast<Slot*>(map(capacity * sizeof(Slot)));
  if (slots == nullptr) return false;
  for (std::size_t k = 0; k < shard.capacity; ++k) {
    if (shard.slots[k].address == 0) continue;
    std::size_t i = (hash(shard.slots[k].address) / kShards) & (capacity - 1);
    while (slots[i].address != 0) i = (i + 1) & (capacity - 1);
    slots[i] = shard.slots[k];
  }
  if (shard.slots != nullptr) munmap(shard.slots, shard.capacity * sizeof(Slot));
  shard.slots = slots;
  shard.capacity = capacity;
  return true;
}

void BlockTable::insert(DeviceAddress address, shm::Bytes size) noexcept {
  if (address == 0) return;  // a driver never returns it; it means "empty" here
  Shard& shard = shards_[hash(address) % kShards];
  const LockGuard guard(shard.lock);
  if (Slot* const stale = find(shard, address)) {
    gauge_.remove(shm::Bytes(stale->size));
    stale->size = size.value();
    gauge_.add(size);
    return;
  }
  // At most 3/4 full, so that a search always ends at an empty slot.
  if ((shard.used + 1) * 4 > shard.capacity * 3 && !grow(shard) && shard.used + 1 >= shard.capacity) {
    gauge_.count_untracked();
    return;
  }
  const std::size_t mask = shard.capacity - 1;
  std::size_t i = (hash(address) / kShards) & mask;
  while (shard.slots[i].address != 0) i = (i + 1) & mask;
  shard.slots[i] = Slot{address, size.value()};
  ++shard.used;
  gauge_.add(size);
}

bool BlockTable::erase(DeviceAddress address, shm::Bytes* size) noexcept {
  if (address == 0) return false;
  Shard& shard = shards_[hash(address) % kShards];
  const LockGuard guard(shard.lock);
  Slot* const found = find(shard, address);
  if (found == nullptr) return false;
  *size = shm::Bytes(found->size);
  gauge_.remove(*size);
  --shard.used;
  // Close the gap: pull back every later entry whose home is not between the gap and itself.
  const std::size_t mask = shard.capacity - 1;
  std::size_t gap = static_cast<std::size_t>(found - shard.slots);
  for (std::size_t i = (gap + 1) & mask; shard.slots[i].address != 0; i = (i + 1) & mask) {
    const std::size_t home = (hash(shard.slots[i].address) / kShards) & mask;
    if (((i - home) & mask) >= ((i - gap) & mask)) {
      shard.slots[gap] = shard.slots[i];
      gap = i;
    }
  }
  shard.slots[gap] = Slot{0, 0};
  return true;
}

std::size_t BlockTable::copy_shard(std::size_t index, Slot** copy) noexcept {
  Shard& shard = shards_[index];
  const LockGuard guard(shard.lock);
  if (shard.used == 0) return 0;
  *copy = static_cast<Slot*>(map(shard.capacity * sizeof(Slot)));
  if (*copy == nullptr) return 0;
  std::memcpy(*copy, shard.slots, shard.capacity * sizeof(Slot));
  return shard.capacity;
}

void BlockTable::drop_copy(Slot* copy, std::size_t slots) noexcept {
  if (copy != nullptr) munmap(copy, slots * sizeof(Slot));
}

void BlockTable::reset_after_fork() noexcept {
  for (Shard& shard : shards_) {
    // Another thread may have been growing the shard when the process was copied: its memory is left alone rather than
    // guessed at.
    __atomic_store_n(&shard.lock, 0, __ATOMIC_RELAXED);
    shard.slots = nullptr;
    shard.capacity = 0;
    shard.used = 0;
  }
}

}  // namespace memopt::agent
