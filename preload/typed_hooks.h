// Hooks with a function of their own. A hook that is not listed in typed_hooks.cpp is counted and forwarded.
#pragma once

#include "preload/hook_table.h"

namespace memopt::preload {

// The function of ours that the hook's trampoline jumps to, or null. Each has the driver's signature (checked by the
// compiler), never throws, returns the driver's own code and writes no output that the driver did not write.
void* typed_function(Hook hook) noexcept;

namespace hooks {

// proc_address.cpp
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) noexcept;
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* found) noexcept;

// memory_hooks.cpp
CUresult cuMemAlloc(CUdeviceptr_v1* address, unsigned int bytes) noexcept;
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) noexcept;
CUresult cuMemAllocPitch(CUdeviceptr_v1* address, unsigned int* pitch, unsigned int width, unsigned int height,
                         unsigned int element) noexcept;
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int element) noexcept;
CUresult cuMemFree(CUdeviceptr_v1 address) noexcept;
CUresult cuMemFree_v2(CUdeviceptr address) noexcept;
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) noexcept;
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) noexcept;
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) noexcept;
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) noexcept;
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) noexcept;

// context_hooks.cpp
CUresult cuCtxDestroy(CUcontext context) noexcept;
CUresult cuCtxDestroy_v2(CUcontext context) noexcept;
CUresult cuCtxDetach(CUcontext context) noexcept;
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) noexcept;
CUresult cuDevicePrimaryCtxRelease(CUdevice device) noexcept;
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) noexcept;
CUresult cuDevicePrimaryCtxReset(CUdevice device) noexcept;
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) noexcept;

// The hooks of the list, declared with the driver's own signatures.
template <typename Pointer>
struct NoexceptFunction;
template <typename Result, typename... Parameters>
struct NoexceptFunction<Result (*)(Parameters...)> {
  using Type = Result(Parameters...) noexcept;
};
#define MEMOPT_TYPED(symbol) NoexceptFunction<Signature<Hook::symbol>::Pointer>::Type symbol;
#include "preload/operation_hooks.inc"
#undef MEMOPT_TYPED

}  // namespace hooks
}  // namespace memopt::preload
