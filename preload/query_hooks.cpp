// Hooks of questions whose answers must not show how memory is served: a block is what the program asked for, and
// memory that is held in reserve is free. The driver is asked first: its errors are the program's.
#include <algorithm>

#include "agent/memory/arena.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

// The block's own answer in place of the driver's.
void correct(CUpointer_attribute attribute, void* data, const agent::BlockExtent& block) noexcept {
  if (data == nullptr) return;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) *static_cast<CUdeviceptr*>(data) = block.base;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) *static_cast<size_t*>(data) = block.bytes;
  // Whoever asks by which call a block is to be freed asks for its pool.
  if (attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) *static_cast<CUmemoryPool*>(data) = block.pool;
}

// What the driver made, it knows best.
bool is_served(CUdeviceptr address, agent::BlockExtent* block) noexcept {
  return agent::arena_block_at(address, block) && !block->driver_made;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) noexcept {
  const CUresult result = real<Hook::cuMemGetInfo_v2>()(free, total);
  if (result != CUDA_SUCCESS || free == nullptr) return result;
  *free += agent::arena_reserve_bytes();
  if (total != nullptr) *free = std::min(*free, *total);
  return result;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) noexcept {
  const CUresult result = real<Hook::cuMemGetAddressRange_v2>()(base, bytes, address);
  agent::BlockExtent block;
  if (result != CUDA_SUCCESS || !is_served(address, &block)) return result;
  if (base != nullptr) *base = block.base;
  if (bytes != nullptr) *bytes = block.bytes;
  return result;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) noexcept {
  const CUresult result = real<Hook::cuPointerGetAttribute>()(data, attribute, address);
  agent::BlockExtent block;
  if (!is_served(address, &block)) return result;
  // To the driver it is memory of no pool, which may be an error.
  const bool of_pool = attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE && block.pool != nullptr && data != nullptr;
  if (result != CUDA_SUCCESS && !of_pool) return result;
  correct(attribute, data, block);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) noexcept {
  const CUresult result = real<Hook::cuPointerGetAttributes>()(count, attributes, data, address);
  agent::BlockExtent block;
  if (result != CUDA_SUCCESS || attributes == nullptr || data == nullptr || !is_served(address, &block)) {
    return result;
  }
  for (unsigned int i = 0; i < count; ++i) correct(attributes[i], data[i], block);
  return result;
}

}  // namespace memopt::preload::hooks
