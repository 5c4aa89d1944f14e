#include "agent/memory/memory_pools.h"

#include <algorithm>

namespace memopt::agent {
namespace {

// A pool's blocks begin at multiples of this, and so much of it is in use, as the driver counts.
constexpr std::uint64_t kAlignment = 512;

constexpr std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void MemoryPools::start(CUdevice device) noexcept {
  device_ = device;
  int supported = 0;
  supported_ =
      driver_.device_attribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device) == CUDA_SUCCESS &&
      supported != 0 && driver_.default_pool(&default_, device) == CUDA_SUCCESS && default_ != nullptr;
  if (supported_) add(default_, device);
}

MemoryPools::Pool* MemoryPools::find(CUmemoryPool handle) noexcept {
  // Nearly always the pool of the call before.
  if (last_ != nullptr && last_->first == handle) [[likely]]
    return &last_->second;
  const auto known = pools_.find(handle);
  if (known == pools_.end()) return nullptr;
  last_ = &*known;
  return &last_->second;
}

void MemoryPools::add(CUmemoryPool handle, CUdevice device) noexcept {
  try {
    pools_.try_emplace(handle, Pool{.device = device});
  } catch (...) {
    // Out of host memory: the pool is the driver's to serve.
  }
}

CUmemoryPool MemoryPools::current() noexcept {
  if (!supported_) return nullptr;
  if (!asked_current_) {
    current_ = nullptr;
    if (driver_.current_pool(&current_, device_) != CUDA_SUCCESS) current_ = nullptr;
    asked_current_ = true;
  }
  return serves(current_) ? current_ : nullptr;
}

bool MemoryPools::serves(CUmemoryPool handle) const noexcept {
  const Pool* const pool = supported_ ? find(handle) : nullptr;
  return pool != nullptr && pool->served && pool->device == device_;
}

void MemoryPools::created(CUmemoryPool pool, const CUmemPoolProps& properties) noexcept {
  if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      properties.maxSize != 0 || properties.usage != 0) {
    return;
  }
  add(pool, properties.location.id);
}

void MemoryPools::destroyed(CUmemoryPool pool) noexcept {
  // Its blocks live on; the handle may be given to another pool, which begins anew.
  pools_.erase(pool);
  last_ = nullptr;
  current_may_have_changed();
}

void MemoryPools::accessible(CUmemoryPool handle, CUdevice device) noexcept {
  Pool* const pool = find(handle);
  if (pool != nullptr && pool->device != device) pool->served = false;
}

void MemoryPools::allocated(CUmemoryPool handle, std::uint64_t bytes) noexcept {
  Pool* const pool = find(handle);
  if (pool == nullptr) return;
  pool->used += rounded(bytes);
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->used);
}

void MemoryPools::freed(CUmemoryPool handle, std::uint64_t bytes) noexcept {
  // A pool of the same handle may have come after the one that the block was of.
  if (Pool* const pool = find(handle)) pool->used -= std::min(pool->used, rounded(bytes));
}

void MemoryPools::add_use(CUmemoryPool handle, CUmemPool_attribute attribute, std::uint64_t held,
                          std::uint64_t* value) noexcept {
  Pool* const pool = find(handle);
  if (pool == nullptr) return;
  const std::uint64_t reserved = pool->used + (handle == default_ ? held : 0);
  pool->reserved_high = std::max(pool->reserved_high, reserved);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *value += pool->used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *value += pool->used_high;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *value += reserved;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *value += pool->reserved_high;
      break;
    default:
      break;
  }
}

void MemoryPools::reset_high(CUmemoryPool handle, CUmemPool_attribute attribute) noexcept {
  Pool* const pool = find(handle);
  if (pool == nullptr) return;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool->used_high = pool->used;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool->reserved_high = pool->used;
}

}  // namespace memopt::agent
