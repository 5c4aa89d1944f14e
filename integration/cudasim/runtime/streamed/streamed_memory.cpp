// Memory that is allocated and freed in stream order, and prefetching.

#include "api.h"
#include "call.h"

using namespace cudart;

cudaError_t cudaMallocAsync(void** devPtr, size_t size, cudaStream_t hStream) {
  if (!devPtr) return record(cudaErrorInvalidValue);
  if (!size) {
    *devPtr = nullptr;
    return record(enter_context());
  }
  CUdeviceptr address = 0;
  const cudaError_t error = ask_context<&DriverTable::cuMemAllocAsync>(kDefaultStream, &address, size, hStream);
  if (error == cudaSuccess) *devPtr = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaMallocFromPoolAsync(void** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream) {
  if (!ptr) return record(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const cudaError_t error =
      ask_context<&DriverTable::cuMemAllocFromPoolAsync>(kDefaultStream, &address, size, memPool, stream);
  if (error == cudaSuccess) *ptr = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaFreeAsync(void* devPtr, cudaStream_t hStream) {
  if (!devPtr) return record(enter_context());
  return call_context<&DriverTable::cuMemFreeAsync>(kDefaultStream, device_pointer(devPtr), hStream);
}

cudaError_t cudaMemPrefetchAsync(const void* devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  CUmemLocation target{};
  target.type = static_cast<CUmemLocationType>(location.type);
  target.id = location.id;
  return call_context<&DriverTable::cuMemPrefetchAsync>(kDefaultStream, device_pointer(devPtr), count, target, flags,
                                                        stream);
}
