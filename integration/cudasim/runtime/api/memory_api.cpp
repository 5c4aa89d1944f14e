// Device, pinned and managed memory: getting it, giving it back, asking about it.

#include "api.h"
#include "call.h"

using namespace cudart;

namespace {

constexpr unsigned kPitchElementBytes = 16;  // good for every element type the hardware coalesces

CUmemLocation driver_location(cudaMemLocation location) {
  CUmemLocation result{};
  result.type = static_cast<CUmemLocationType>(location.type);
  result.id = location.id;
  return result;
}

}  // namespace

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  if (!devPtr) return record(cudaErrorInvalidValue);
  if (!size) {
    // Asked for nothing, the runtime gives nothing and is content; the driver would call it an invalid value.
    *devPtr = nullptr;
    return record(enter_context());
  }
  CUdeviceptr address = 0;
  const cudaError_t error = ask_context<&DriverTable::cuMemAlloc>(kDefaultStream, &address, size);
  if (error == cudaSuccess) *devPtr = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaFree(void* devPtr) {
  if (!devPtr) return record(enter_context());  // a customary way to create the context
  return call_context<&DriverTable::cuMemFree>(kDefaultStream, device_pointer(devPtr));
}

cudaError_t cudaMallocPitch(void** devPtr, size_t* pitch, size_t width, size_t height) {
  if (!devPtr || !pitch) return record(cudaErrorInvalidValue);
  if (!width || !height) {
    *devPtr = nullptr;
    *pitch = 0;
    return record(enter_context());
  }
  CUdeviceptr address = 0;
  const cudaError_t error =
      ask_context<&DriverTable::cuMemAllocPitch>(kDefaultStream, &address, pitch, width, height, kPitchElementBytes);
  if (error == cudaSuccess) *devPtr = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr* pitchedDevPtr, struct cudaExtent extent) {
  if (!pitchedDevPtr) return record(cudaErrorInvalidValue);
  size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return record(cudaErrorMemoryAllocation);
  void* address = nullptr;
  size_t pitch = 0;
  const cudaError_t error = cudaMallocPitch(&address, &pitch, extent.width, rows);
  if (error == cudaSuccess) *pitchedDevPtr = {address, pitch, extent.width, extent.height};
  return error;
}

cudaError_t cudaMallocManaged(void** devPtr, size_t size, unsigned int flags) {
  if (!devPtr || !size) return record(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const cudaError_t error = ask_context<&DriverTable::cuMemAllocManaged>(kDefaultStream, &address, size, flags);
  if (error == cudaSuccess) *devPtr = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaMallocHost(void** ptr, size_t size) { return cudaHostAlloc(ptr, size, cudaHostAllocDefault); }

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  if (!pHost) return record(cudaErrorInvalidValue);
  if (!size) {
    *pHost = nullptr;
    return record(enter_context());
  }
  return call_context<&DriverTable::cuMemHostAlloc>(kDefaultStream, pHost, size, flags);
}

cudaError_t cudaFreeHost(void* ptr) {
  if (!ptr) return record(enter_context());
  return call_context<&DriverTable::cuMemFreeHost>(kDefaultStream, ptr);
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  return call_context<&DriverTable::cuMemHostRegister>(kDefaultStream, ptr, size, flags);
}

cudaError_t cudaHostUnregister(void* ptr) {
  return call_context<&DriverTable::cuMemHostUnregister>(kDefaultStream, ptr);
}

cudaError_t cudaHostGetDevicePointer(void** pDevice, void* pHost, unsigned int flags) {
  if (!pDevice) return record(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const cudaError_t error =
      ask_context<&DriverTable::cuMemHostGetDevicePointer>(kDefaultStream, &address, pHost, flags);
  if (error == cudaSuccess) *pDevice = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaHostGetFlags(unsigned int* pFlags, void* pHost) {
  return call_context<&DriverTable::cuMemHostGetFlags>(kDefaultStream, pFlags, pHost);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call_context<&DriverTable::cuMemGetInfo>(kDefaultStream, free, total);
}

cudaError_t cudaMemAdvise(const void* devPtr, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  return call_context<&DriverTable::cuMemAdvise>(kDefaultStream, device_pointer(devPtr), count,
                                                 static_cast<CUmem_advise>(advice), driver_location(location));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* ptr) {
  if (!attributes) return record(cudaErrorInvalidValue);
  // Memory that CUDA does not know is no error here: the driver leaves zeros.
  CUmemorytype type = static_cast<CUmemorytype>(0);
  int device = 0;
  CUdeviceptr device_address = 0;
  void* host_address = nullptr;
  int managed = 0;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                  CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* found[] = {&type, &device, &device_address, &host_address, &managed};
  const cudaError_t error = ask_context<&DriverTable::cuPointerGetAttributes>(
      kDefaultStream, static_cast<unsigned>(sizeof wanted / sizeof wanted[0]), wanted, found, device_pointer(ptr));
  if (error != cudaSuccess) return record(error);
  *attributes = {};
  attributes->device = device;
  attributes->devicePointer = reinterpret_cast<void*>(device_address);
  attributes->hostPointer = host_address;
  if (managed) {
    attributes->type = cudaMemoryTypeManaged;
  } else if (type == CU_MEMORYTYPE_DEVICE) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->hostPointer = nullptr;
  } else if (type == CU_MEMORYTYPE_HOST) {
    attributes->type = cudaMemoryTypeHost;
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->devicePointer = nullptr;
    attributes->hostPointer = const_cast<void*>(ptr);
  }
  return cudaSuccess;
}
