// Managed memory: blocks of the device's memory that the host uses at the same address. It does not migrate, and can't
// be more than the device has; what is said about where it should be is checked and has no effect.
#define __CUDA_API_VERSION_INTERNAL
#include "api/call.h"
#include "graph/graphs.h"
#include "memory/memory_impl.h"

using namespace cudasim;

namespace {

constexpr CUdevice kDevice = 0;

CUmemLocation of_device(CUdevice device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == CU_DEVICE_CPU ? 0 : device;
  return location;
}

bool is_managed(Driver& driver, CUdeviceptr begin, std::size_t size) {
  const Allocation* const block = driver.memory.find_allocation(begin);
  return block != nullptr && block->managed && size != 0 && size <= block->base + block->size - begin;
}

CUresult check_location(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return location.id == kDevice ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult prefetch(CallSite& site, CUdeviceptr begin, size_t size, const CUmemLocation& location, unsigned flags,
                  CUstream stream, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    Stream* const found = driver.engine.find_stream(context, stream, mode);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult bad = check_location(location); bad != CUDA_SUCCESS) return bad;
    if (flags != 0 || !is_managed(driver, begin, size)) return CUDA_ERROR_INVALID_VALUE;
    return driver.graphs->captures.wait_for(*found);  // it can't be captured
  });
}

CUresult advise(CallSite& site, CUdeviceptr begin, size_t size, CUmem_advise advice, const CUmemLocation& location) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
      return CUDA_ERROR_INVALID_VALUE;
    const bool looked_at = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice >= CU_MEM_ADVISE_SET_ACCESSED_BY;
    if (const CUresult bad = looked_at ? check_location(location) : CUDA_SUCCESS; bad != CUDA_SUCCESS) return bad;
    return is_managed(driver, begin, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult attach(CallSite& site, CUstream stream, CUdeviceptr begin, size_t size, unsigned flags, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    Stream* const found = driver.engine.find_stream(context, stream, mode);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const Allocation* const block = driver.memory.find_allocation(begin);
    const bool whole = block != nullptr && block->managed && block->base == begin && (size == 0 || size == block->size);
    if (!whole || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE))
      return CUDA_ERROR_INVALID_VALUE;
    const bool is_default = found->kind != StreamKind::kCreated;
    return flags == CU_MEM_ATTACH_SINGLE && is_default ? CUDA_ERROR_INVALID_VALUE
                                                       : driver.graphs->captures.wait_for(*found);
  });
}

}  // namespace

CUDASIM_API cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags) {
  static CallSite site{"cuMemAllocManaged"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
      return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = driver.memory.allocate(context, size, out);
    if (result == CUDA_SUCCESS) driver.memory.impl().blocks.find(*out)->managed = true;
    return result;
  });
}

CUDASIM_API cuMemPrefetchAsync(CUdeviceptr begin, size_t size, CUdevice device, CUstream stream) {
  static CallSite site{"cuMemPrefetchAsync"};
  return prefetch(site, begin, size, of_device(device), 0, stream, StreamMode::kLegacy);
}
CUDASIM_API cuMemPrefetchAsync_ptsz(CUdeviceptr begin, size_t size, CUdevice device, CUstream stream) {
  static CallSite site{"cuMemPrefetchAsync_ptsz"};
  return prefetch(site, begin, size, of_device(device), 0, stream, StreamMode::kPerThread);
}
CUDASIM_API cuMemPrefetchAsync_v2(CUdeviceptr begin, size_t size, CUmemLocation location, unsigned int flags,
                                  CUstream stream) {
  static CallSite site{"cuMemPrefetchAsync_v2"};
  return prefetch(site, begin, size, location, flags, stream, StreamMode::kLegacy);
}
CUDASIM_API cuMemPrefetchAsync_v2_ptsz(CUdeviceptr begin, size_t size, CUmemLocation location, unsigned int flags,
                                       CUstream stream) {
  static CallSite site{"cuMemPrefetchAsync_v2_ptsz"};
  return prefetch(site, begin, size, location, flags, stream, StreamMode::kPerThread);
}
CUDASIM_API cuMemAdvise(CUdeviceptr begin, size_t size, CUmem_advise advice, CUdevice device) {
  static CallSite site{"cuMemAdvise"};
  return advise(site, begin, size, advice, of_device(device));
}
CUDASIM_API cuMemAdvise_v2(CUdeviceptr begin, size_t size, CUmem_advise advice, CUmemLocation location) {
  static CallSite site{"cuMemAdvise_v2"};
  return advise(site, begin, size, advice, location);
}
CUDASIM_API cuStreamAttachMemAsync(CUstream stream, CUdeviceptr begin, size_t size, unsigned int flags) {
  static CallSite site{"cuStreamAttachMemAsync"};
  return attach(site, stream, begin, size, flags, StreamMode::kLegacy);
}
CUDASIM_API cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr begin, size_t size, unsigned int flags) {
  static CallSite site{"cuStreamAttachMemAsync_ptsz"};
  return attach(site, stream, begin, size, flags, StreamMode::kPerThread);
}
