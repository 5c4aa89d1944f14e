// Hooks of questions whose answers must not show how memory is served: a block is what the program asked for, and
// memory that is held in reserve is free. The driver is asked first: its errors are the program's. What it says of the
// chunks beneath a block is replaced where it would say something else of a block of its own (docs/pointers.md).
#include <algorithm>

#include "agent/memory/arena.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

// An address of no block, to ask the driver what it says of such.
constexpr CUdeviceptr kNowhere = 1;
// The driver counts its identifiers from 1 on.
constexpr unsigned long long kOurIdentifiers = 1ull << 62;

template <typename Value>
void give(void* data, Value value) noexcept {
  *static_cast<Value*>(data) = value;
}

// The block's own answer in place of the driver's. False: it is the driver's to answer.
bool answer(CUpointer_attribute attribute, void* data, const agent::BlockExtent& block) noexcept {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      // Memory of a pool belongs to no context, as ours does not.
      if (block.pool != nullptr) return false;
      give(data, block.context);
      return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      give(data, block.sync_memops ? 1u : 0u);
      return true;
    // The driver's are those of a chunk, which several blocks may share.
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      give(data, kOurIdentifiers | block.number);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      give(data, CUdeviceptr{block.base});
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      give(data, size_t{block.bytes});
      return true;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      // Our chunks are where the device can; a pool's memory is not.
      if (block.pool == nullptr) return false;
      give(data, 0u);
      return true;
    // A program that asks by which call a block is to be freed asks for its pool.
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      give(data, block.pool);
      return true;
    default:
      return false;
  }
}

// What the driver made, it knows best.
bool is_served(CUdeviceptr address, agent::BlockExtent* block) noexcept {
  return agent::arena_block_at(address, block) && !block->driver_made;
}

// So the driver speaks of what memory of ours is not; other errors are about the call itself.
bool is_about_memory(CUresult result) noexcept {
  return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED;
}

// One attribute that the driver could not tell of our memory spoils the call for all: they are asked one by one.
CUresult ask_each(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr address,
                  const agent::BlockExtent& block) noexcept {
  for (unsigned int i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned int i = 0; i < count; ++i) {
    if (answer(attributes[i], data[i], block)) continue;
    const CUresult result = real<Hook::cuPointerGetAttributes>()(1, attributes + i, data + i, address);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
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
  if (agent::arena_is_unused(address)) return real<Hook::cuMemGetAddressRange_v2>()(base, bytes, kNowhere);
  const CUresult result = real<Hook::cuMemGetAddressRange_v2>()(base, bytes, address);
  agent::BlockExtent block;
  if (result != CUDA_SUCCESS || !is_served(address, &block)) return result;
  if (base != nullptr) *base = block.base;
  if (bytes != nullptr) *bytes = block.bytes;
  return result;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) noexcept {
  if (agent::arena_is_unused(address)) return real<Hook::cuPointerGetAttribute>()(data, attribute, kNowhere);
  const CUresult result = real<Hook::cuPointerGetAttribute>()(data, attribute, address);
  agent::BlockExtent block;
  if (data == nullptr || !is_served(address, &block)) return result;
  if (result != CUDA_SUCCESS && !is_about_memory(result)) return result;
  return answer(attribute, data, block) ? CUDA_SUCCESS : result;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) noexcept {
  if (agent::arena_is_unused(address)) {
    return real<Hook::cuPointerGetAttributes>()(count, attributes, data, kNowhere);
  }
  const CUresult result = real<Hook::cuPointerGetAttributes>()(count, attributes, data, address);
  agent::BlockExtent block;
  if (count == 0 || attributes == nullptr || data == nullptr || !is_served(address, &block)) return result;
  if (is_about_memory(result)) return ask_each(count, attributes, data, address, block);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned int i = 0; i < count; ++i) answer(attributes[i], data[i], block);
  return result;
}

// Set on every chunk beneath the block, and not taken back from them: others may lie there too, and to synchronise more
// than was asked for changes no result.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) noexcept {
  const auto set = real<Hook::cuPointerSetAttribute>();
  if (agent::arena_is_unused(address)) return set(value, attribute, kNowhere);
  agent::BlockExtent block;
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !is_served(address, &block)) {
    return set(value, attribute, address);
  }
  const bool on = *static_cast<const unsigned int*>(value) != 0;
  CUresult result = set(value, attribute, on ? address : kNowhere);
  if (!on && is_about_memory(result)) result = CUDA_SUCCESS;
  // A block may begin and end within a chunk. 0: the driver knows the memory as one piece.
  if (on && block.chunk != 0) {
    CUdeviceptr at = block.base / block.chunk * block.chunk;
    for (; result == CUDA_SUCCESS && at < block.base + block.bytes; at += block.chunk) {
      result = set(value, attribute, std::max<CUdeviceptr>(at, block.base));
    }
  }
  if (result == CUDA_SUCCESS) agent::arena_note_sync_memops(address, on);
  return result;
}

}  // namespace memopt::preload::hooks
