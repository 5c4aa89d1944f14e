// cuMemAlloc and what asks about it. Managed memory is in managed.cpp.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <limits>
#include <vector>

#include "api/call.h"
#include "memory/memory_impl.h"
#include "pools.h"

using namespace cudasim;

namespace {

// Of cuMemAllocPitch; what the real driver's textures want.
constexpr std::size_t kPitchAlignment = 512;

std::vector<ByteRange> bytes_of(const Memory& memory, const Allocation& block) {
  std::vector<ByteRange> ranges;
  memory.for_each_byte_range(block.base, block.size, [&](ByteRange range) { ranges.push_back(range); });
  return ranges;
}

CUresult free_block(Driver& driver, ContextId context, const char* symbol, CUdeviceptr base) {
  if (base == 0) return CUDA_SUCCESS;
  const Allocation* block = driver.memory.find_allocation(base);
  if (block == nullptr || block->base != base) return CUDA_ERROR_INVALID_VALUE;
  if (block->pool != nullptr) {
    // "The driver assumes that all accesses to the allocation are complete and performs no further synchronization."
    driver.pools->free_at_once(symbol, *block);
    return CUDA_SUCCESS;
  }
  // The driver waits for all that is queued before it takes memory back.
  if (const CUresult result = driver.engine.wait_context(context); result != CUDA_SUCCESS) return result;
  block = driver.memory.find_allocation(base);  // the wait may have let another thread in
  if (block == nullptr || block->base != base) return CUDA_ERROR_INVALID_VALUE;
  driver.engine.forget(symbol, bytes_of(driver.memory, *block));
  return driver.memory.free(base);
}

}  // namespace

CUDASIM_API cuMemGetInfo_v2(size_t* free, size_t* total) {
  static CallSite site{"cuMemGetInfo_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *free = driver.memory.capacity() - driver.memory.held();
    *total = driver.memory.capacity();
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  static CallSite site{"cuMemAlloc_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.allocate(context, size, out);
  });
}

CUDASIM_API cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                               unsigned int element_size) {
  static CallSite site{"cuMemAllocPitch_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (element_size != 4 && element_size != 8 && element_size != 16) return CUDA_ERROR_INVALID_VALUE;
    if (width > std::numeric_limits<int>::max()) return CUDA_ERROR_INVALID_VALUE;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH
    const std::size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    std::size_t size = 0;
    if (__builtin_mul_overflow(row, height, &size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = driver.memory.allocate(context, size, out);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
  });
}

CUDASIM_API cuMemFree_v2(CUdeviceptr base) {
  static CallSite site{"cuMemFree_v2"};
  return call(site, Needs::kContext,
              [&](Driver& driver, ContextId context) { return free_block(driver, context, site.symbol, base); });
}

CUDASIM_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  static CallSite site{"cuMemGetAddressRange_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const auto found = [&](CUdeviceptr begin, std::uint64_t length) {
      if (base != nullptr) *base = begin;
      if (size != nullptr) *size = length;
      return CUDA_SUCCESS;
    };
    if (const Allocation* block = driver.memory.find_allocation(address)) return found(block->base, block->size);
    if (const VirtualMemory::Mapping* mapping = driver.memory.impl().vmm.find_mapping(address)) {
      return found(mapping->base, mapping->size);
    }
    if (const PinnedBlock* pinned = driver.memory.find_pinned(reinterpret_cast<void*>(address))) {
      return found(reinterpret_cast<CUdeviceptr>(pinned->base), pinned->size);
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}

// The first ABI, with 32-bit addresses and sizes. This device has no memory that such an address could name, as a
// 64-bit process on a real one.

CUDASIM_API cuMemGetInfo(unsigned int* free, unsigned int* total) {
  static CallSite site{"cuMemGetInfo"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto narrow = [](std::uint64_t bytes) {
      return static_cast<unsigned>(std::min<std::uint64_t>(bytes, std::numeric_limits<unsigned>::max()));
    };
    *free = narrow(driver.memory.capacity() - driver.memory.held());
    *total = narrow(driver.memory.capacity());
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuMemAlloc(CUdeviceptr_v1* out, unsigned int size) {
  static CallSite site{"cuMemAlloc"};
  return call(site, Needs::kContext, [&](Driver&, ContextId) {
    return out == nullptr || size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUDASIM_API cuMemAllocPitch(CUdeviceptr_v1* out, unsigned int* pitch, unsigned int width, unsigned int height,
                            unsigned int element_size) {
  static CallSite site{"cuMemAllocPitch"};
  return call(site, Needs::kContext, [&](Driver&, ContextId) {
    if (out == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (element_size != 4 && element_size != 8 && element_size != 16) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUDASIM_API cuMemFree(CUdeviceptr_v1 base) {
  static CallSite site{"cuMemFree"};
  return call(site, Needs::kContext,
              [&](Driver& driver, ContextId context) { return free_block(driver, context, site.symbol, base); });
}

CUDASIM_API cuMemGetAddressRange(CUdeviceptr_v1*, unsigned int*, CUdeviceptr_v1) {
  static CallSite site{"cuMemGetAddressRange"};
  return call(site, Needs::kContext, [](Driver&, ContextId) { return CUDA_ERROR_NOT_FOUND; });
}
