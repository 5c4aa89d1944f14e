// The driver functions that the agent itself calls: the real ones, never our hooks. The preload knows
// them; a function that the driver lacks is one that returns
// CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, never null.
#pragma once

#include <cuda.h>

namespace memopt::agent {

struct Driver {
  // Memory.
  CUresult (*mem_alloc)(CUdeviceptr*, size_t) = nullptr;
  CUresult (*mem_free)(CUdeviceptr) = nullptr;
  CUresult (*mem_get_info)(size_t* free, size_t* total) = nullptr;
  CUresult (*address_reserve)(CUdeviceptr*, size_t bytes, size_t alignment, CUdeviceptr wanted,
                              unsigned long long flags) = nullptr;
  CUresult (*address_free)(CUdeviceptr, size_t) = nullptr;
  CUresult (*create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                     unsigned long long flags) = nullptr;
  CUresult (*release)(CUmemGenericAllocationHandle) = nullptr;
  CUresult (*map)(CUdeviceptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle,
                  unsigned long long flags) = nullptr;
  CUresult (*unmap)(CUdeviceptr, size_t) = nullptr;
  CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t count) = nullptr;
  CUresult (*granularity)(size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) = nullptr;
  CUresult (*host_register)(void*, size_t, unsigned int flags) = nullptr;
  CUresult (*host_unregister)(void*) = nullptr;
  CUresult (*host_device_pointer)(CUdeviceptr*, void*, unsigned int flags) = nullptr;
  CUresult (*copy_to_host_async)(void*, CUdeviceptr, size_t, CUstream) = nullptr;
  CUresult (*copy_to_device_async)(CUdeviceptr, const void*, size_t, CUstream) = nullptr;
  CUresult (*default_pool)(CUmemoryPool*, CUdevice) = nullptr;
  CUresult (*current_pool)(CUmemoryPool*, CUdevice) = nullptr;
  // Devices and contexts.
  CUresult (*device_attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*current_context)(CUcontext*) = nullptr;
  CUresult (*current_device)(CUdevice*) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*synchronize_context)() = nullptr;
  // Order.
  CUresult (*event_create)(CUevent*, unsigned int flags) = nullptr;
  CUresult (*event_destroy)(CUevent) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_query)(CUevent) = nullptr;
  CUresult (*event_elapsed)(float* milliseconds, CUevent from, CUevent to) = nullptr;
  CUresult (*event_synchronize)(CUevent) = nullptr;
  CUresult (*stream_create)(CUstream*, unsigned int flags) = nullptr;
  CUresult (*stream_wait_event)(CUstream, CUevent, unsigned int flags) = nullptr;
  CUresult (*stream_synchronize)(CUstream) = nullptr;
  CUresult (*stream_is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
  CUresult (*stream_flags)(CUstream, unsigned int*) = nullptr;
  CUresult (*exchange_capture_mode)(CUstreamCaptureMode*) = nullptr;
  // Kernels.
  CUresult (*function_parameter)(CUfunction, size_t index, size_t* offset, size_t* bytes) = nullptr;
  CUresult (*kernel_parameter)(CUkernel, size_t index, size_t* offset, size_t* bytes) = nullptr;
  CUresult (*function_name)(const char**, CUfunction) = nullptr;
  CUresult (*kernel_name)(const char**, CUkernel) = nullptr;
  CUresult (*module_load)(CUmodule*, const void* image) = nullptr;
  CUresult (*module_function)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*launch_kernel)(CUfunction, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                            CUstream, void** parameters, void** extra) = nullptr;
};

// Asked of the preload at the first use; then the same for the life of the process.
const Driver& driver() noexcept;

}  // namespace memopt::agent
