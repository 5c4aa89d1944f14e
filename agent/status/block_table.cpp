#include "agent/status/block_table.h"

#include <sys/mman.h>

#include <algorithm>

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

void BlockTable::insert(DeviceAddress address, shm::Bytes size) noexcept {
  if (address == 0) return;  // a driver never returns it; it means "empty" here
  Shard& shard = shards_[hash(address) % kShards];
  const LockGuard guard(shard.lock);
  if (Slot* const stale = shard.blocks.find(address)) {
    gauge_.remove(shm::Bytes(stale->size));
    stale->size = size.value();
    gauge_.add(size);
    return;
  }
  if (!shard.blocks.reserve_one()) {
    gauge_.count_untracked();
    return;
  }
  shard.blocks.insert({address, size.value()});
  gauge_.add(size);
}

bool BlockTable::erase(DeviceAddress address, shm::Bytes* size) noexcept {
  if (address == 0) return false;
  Shard& shard = shards_[hash(address) % kShards];
  const LockGuard guard(shard.lock);
  Slot* const found = shard.blocks.find(address);
  if (found == nullptr) return false;
  *size = shm::Bytes(found->size);
  gauge_.remove(*size);
  shard.blocks.erase(found);
  return true;
}

std::span<BlockTable::Slot> BlockTable::copy_shard(std::size_t index) noexcept {
  Shard& shard = shards_[index];
  const LockGuard guard(shard.lock);
  const std::span<Slot> slots = shard.blocks.slots();
  if (shard.blocks.size() == 0) return {};
  auto* const copy = static_cast<Slot*>(map_pages(slots.size_bytes()));
  if (copy == nullptr) return {};
  std::copy(slots.begin(), slots.end(), copy);
  return {copy, slots.size()};
}

void BlockTable::drop_copy(std::span<Slot> copy) noexcept {
  if (!copy.empty()) munmap(copy.data(), copy.size_bytes());
}

void BlockTable::reset_after_fork() noexcept {
  for (Shard& shard : shards_) {
    __atomic_store_n(&shard.lock, 0, __ATOMIC_RELAXED);
    shard.blocks.forget();
  }
}

}  // namespace memopt::agent
