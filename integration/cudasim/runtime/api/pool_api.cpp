// Memory pools. The runtime's structures and numbers are the driver's.

#include "api.h"
#include "call.h"

using namespace cudart;

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(static_cast<int>(cudaMemPoolAttrReleaseThreshold) == static_cast<int>(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
static_assert(static_cast<int>(cudaMemPoolAttrUsedMemHigh) == static_cast<int>(CU_MEMPOOL_ATTR_USED_MEM_HIGH));

cudaError_t cudaMemPoolCreate(cudaMemPool_t* memPool, const struct cudaMemPoolProps* poolProps) {
  return call_context<&DriverTable::cuMemPoolCreate>(kDefaultStream, memPool,
                                                     reinterpret_cast<const CUmemPoolProps*>(poolProps));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  return call_context<&DriverTable::cuMemPoolDestroy>(kDefaultStream, memPool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
  return call_context<&DriverTable::cuMemPoolTrimTo>(kDefaultStream, memPool, minBytesToKeep);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  return call_context<&DriverTable::cuMemPoolSetAttribute>(kDefaultStream, memPool,
                                                           static_cast<CUmemPool_attribute>(attr), value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  return call_context<&DriverTable::cuMemPoolGetAttribute>(kDefaultStream, memPool,
                                                           static_cast<CUmemPool_attribute>(attr), value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc* descList, size_t count) {
  return call_context<&DriverTable::cuMemPoolSetAccess>(kDefaultStream, memPool,
                                                        reinterpret_cast<const CUmemAccessDesc*>(descList), count);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags* flags, cudaMemPool_t memPool,
                                 struct cudaMemLocation* location) {
  return call_context<&DriverTable::cuMemPoolGetAccess>(kDefaultStream, reinterpret_cast<CUmemAccess_flags*>(flags),
                                                        memPool, reinterpret_cast<CUmemLocation*>(location));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* memPool, int device) {
  return call_context<&DriverTable::cuDeviceGetDefaultMemPool>(kDefaultStream, memPool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* memPool, int device) {
  return call_context<&DriverTable::cuDeviceGetMemPool>(kDefaultStream, memPool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  return call_context<&DriverTable::cuDeviceSetMemPool>(kDefaultStream, device, memPool);
}

// Memory that graphs hold.

static_assert(static_cast<int>(cudaGraphMemAttrReservedMemHigh) ==
              static_cast<int>(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void* value) {
  return call_driver<&DriverTable::cuDeviceGetGraphMemAttribute>(kDefaultStream, device,
                                                                 static_cast<CUgraphMem_attribute>(attr), value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void* value) {
  return call_driver<&DriverTable::cuDeviceSetGraphMemAttribute>(kDefaultStream, device,
                                                                 static_cast<CUgraphMem_attribute>(attr), value);
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return call_driver<&DriverTable::cuDeviceGraphMemTrim>(kDefaultStream, device);
}

// Pools by location and kind of memory, since CUDA 13. An older driver has none of them, and the call says so.

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* memPool, struct cudaMemLocation* location,
                                     enum cudaMemAllocationType type) {
  return call_context<&DriverTable::cuMemGetDefaultMemPool>(
      kDefaultStream, memPool, reinterpret_cast<CUmemLocation*>(location), static_cast<CUmemAllocationType>(type));
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* memPool, struct cudaMemLocation* location,
                              enum cudaMemAllocationType type) {
  return call_context<&DriverTable::cuMemGetMemPool>(
      kDefaultStream, memPool, reinterpret_cast<CUmemLocation*>(location), static_cast<CUmemAllocationType>(type));
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation* location, enum cudaMemAllocationType type,
                              cudaMemPool_t memPool) {
  return call_context<&DriverTable::cuMemSetMemPool>(kDefaultStream, reinterpret_cast<CUmemLocation*>(location),
                                                     static_cast<CUmemAllocationType>(type), memPool);
}
