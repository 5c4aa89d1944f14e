// Stream-ordered allocation and memory pools. Pools of host and managed memory, and pools shared with other processes,
// are not part of this device.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <iterator>

#include "api/call.h"
#include "graph/graphs.h"
#include "pools.h"

using namespace cudasim;

namespace {

constexpr CUdevice kDevice = 0;

// The context that counts is the stream's; a current one is only needed to say which default stream is meant.
CUresult on_stream(CallSite& site, CUstream handle, StreamMode mode,
                   const std::function<CUresult(Driver&, Stream&)>& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId context) {
    Stream* const stream = driver.engine.find_stream(context, handle, mode);
    if (!driver.pools->available()) return CUDA_ERROR_NOT_SUPPORTED;
    if (stream == nullptr) {
      const bool is_default = handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
      return is_default && context == ContextId::kNone ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
    }
    const CUresult sticky = driver.engine.tell_sticky_error(driver.engine.context_of(*stream));
    return sticky != CUDA_SUCCESS ? sticky : body(driver, *stream);
  });
}

CUresult allocate_or_capture(Driver& driver, CUmemoryPool pool, Stream& stream, const char* symbol, size_t size,
                             CUdeviceptr* out) {
  Captures& captures = driver.graphs->captures;
  if (const CUresult bad = captures.use(stream); bad != CUDA_SUCCESS) return bad;
  if (stream.capture == nullptr) return driver.pools->allocate(pool, stream, symbol, size, out);
  if (out == nullptr || !driver.pools->is_pool(pool)) return CUDA_ERROR_INVALID_VALUE;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, kDevice};
  GraphMemoryPtr memory;
  const CUresult bad =
      driver.graphs->allocate(stream.context, *stream.capture->graph, stream.capture_behind, size, memory);
  if (bad != CUDA_SUCCESS) return bad;
  *out = memory->base;
  captures.add(stream, AllocateNode{std::move(memory), properties});
  return CUDA_SUCCESS;
}

CUresult allocate(CallSite& site, CUdeviceptr* out, size_t size, CUstream stream, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    return allocate_or_capture(driver, driver.pools->current(), found, site.symbol, size, out);
  });
}

CUresult allocate_from(CallSite& site, CUdeviceptr* out, size_t size, CUmemoryPool pool, CUstream stream,
                       StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    return allocate_or_capture(driver, pool, found, site.symbol, size, out);
  });
}

CUresult free_on(CallSite& site, CUdeviceptr base, CUstream stream, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    Captures& captures = driver.graphs->captures;
    if (const CUresult bad = captures.use(found); bad != CUDA_SUCCESS) return bad;
    if (found.capture == nullptr) return driver.pools->free(found, site.symbol, base);
    const GraphMemoryPtr memory = driver.graphs->find_memory(base);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;  // a graph frees what a graph has allocated
    captures.add(found, FreeNode{memory, base});
    return CUDA_SUCCESS;
  });
}

CUresult check_properties(const CUmemPoolProps* properties) {
  if (properties == nullptr || properties->win32SecurityAttributes != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (std::any_of(std::begin(properties->reserved), std::end(properties->reserved),
                  [](unsigned char byte) { return byte != 0; })) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (properties->location.id != kDevice) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  const bool shared = properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
  return shared || properties->usage != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

// Of cuMemGetMemPool and its relatives, which ask by location and kind.
CUresult check_kind(const CUmemLocation* location, CUmemAllocationType type) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return location->id == kDevice ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult tell(CUmemoryPool* out, CUmemoryPool pool) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = pool;
  return CUDA_SUCCESS;
}

CUresult on_device(CallSite& site, CUdevice device, const std::function<CUresult(Driver&)>& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (device != kDevice) return CUDA_ERROR_INVALID_DEVICE;
    return driver.pools->available() ? body(driver) : CUDA_ERROR_NOT_SUPPORTED;
  });
}

CUresult of_kind(CallSite& site, const CUmemLocation* location, CUmemAllocationType type,
                 const std::function<CUresult(Driver&)>& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (!driver.pools->available()) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult bad = check_kind(location, type);
    return bad != CUDA_SUCCESS ? bad : body(driver);
  });
}

}  // namespace

CUDASIM_API cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream) {
  static CallSite site{"cuMemAllocAsync"};
  return allocate(site, out, size, stream, StreamMode::kLegacy);
}
CUDASIM_API cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t size, CUstream stream) {
  static CallSite site{"cuMemAllocAsync_ptsz"};
  return allocate(site, out, size, stream, StreamMode::kPerThread);
}
CUDASIM_API cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool, CUstream stream) {
  static CallSite site{"cuMemAllocFromPoolAsync"};
  return allocate_from(site, out, size, pool, stream, StreamMode::kLegacy);
}
CUDASIM_API cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t size, CUmemoryPool pool, CUstream stream) {
  static CallSite site{"cuMemAllocFromPoolAsync_ptsz"};
  return allocate_from(site, out, size, pool, stream, StreamMode::kPerThread);
}
CUDASIM_API cuMemFreeAsync(CUdeviceptr base, CUstream stream) {
  static CallSite site{"cuMemFreeAsync"};
  return free_on(site, base, stream, StreamMode::kLegacy);
}
CUDASIM_API cuMemFreeAsync_ptsz(CUdeviceptr base, CUstream stream) {
  static CallSite site{"cuMemFreeAsync_ptsz"};
  return free_on(site, base, stream, StreamMode::kPerThread);
}

CUDASIM_API cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  static CallSite site{"cuMemPoolCreate"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (!driver.pools->available()) return CUDA_ERROR_NOT_SUPPORTED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult bad = check_properties(properties);
    return bad != CUDA_SUCCESS ? bad : driver.pools->create(properties->maxSize, out);
  });
}

CUDASIM_API cuMemPoolDestroy(CUmemoryPool pool) {
  static CallSite site{"cuMemPoolDestroy"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.pools->destroy(pool); });
}

CUDASIM_API cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  static CallSite site{"cuMemPoolTrimTo"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.pools->trim(pool, keep); });
}

CUDASIM_API cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  static CallSite site{"cuMemPoolGetAttribute"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.pools->get(pool, attribute, value); });
}

CUDASIM_API cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  static CallSite site{"cuMemPoolSetAttribute"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.pools->set(pool, attribute, value); });
}

// The one device always has access to its pools, which can't be taken from it, and there is no other.
CUDASIM_API cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* descriptions, size_t count) {
  static CallSite site{"cuMemPoolSetAccess"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (!driver.pools->is_pool(pool) || descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
      if (descriptions[i].location.id != kDevice) return CUDA_ERROR_INVALID_DEVICE;
      if (descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  static CallSite site{"cuMemPoolGetAccess"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (!driver.pools->is_pool(pool) || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (location->type) {
      case CU_MEM_LOCATION_TYPE_DEVICE:
        if (location->id != kDevice) return CUDA_ERROR_INVALID_DEVICE;
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
      case CU_MEM_LOCATION_TYPE_HOST:
      case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUDASIM_API cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  static CallSite site{"cuDeviceGetDefaultMemPool"};
  return on_device(site, device, [&](Driver& driver) { return tell(out, driver.pools->default_pool()); });
}

CUDASIM_API cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  static CallSite site{"cuDeviceGetMemPool"};
  return on_device(site, device, [&](Driver& driver) { return tell(out, driver.pools->current()); });
}

CUDASIM_API cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  static CallSite site{"cuDeviceSetMemPool"};
  return on_device(site, device, [&](Driver& driver) { return driver.pools->set_current(pool); });
}

CUDASIM_API cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  static CallSite site{"cuMemGetDefaultMemPool"};
  return of_kind(site, location, type, [&](Driver& driver) { return tell(out, driver.pools->default_pool()); });
}

CUDASIM_API cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  static CallSite site{"cuMemGetMemPool"};
  return of_kind(site, location, type, [&](Driver& driver) { return tell(out, driver.pools->current()); });
}

CUDASIM_API cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  static CallSite site{"cuMemSetMemPool"};
  return of_kind(site, location, type, [&](Driver& driver) { return driver.pools->set_current(pool); });
}
