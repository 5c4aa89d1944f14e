// Pinned and registered host memory. Device address and host address are one and the same.
#define __CUDA_API_VERSION_INTERNAL
#include <array>

#include "api/call.h"
#include "memory/memory_impl.h"

using namespace cudasim;

namespace {

constexpr unsigned kAllocFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
constexpr unsigned kRegisterUnsupported = CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

CUresult allocate(CallSite& site, void** out, std::size_t size, unsigned flags) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || (flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    Memory::Impl& memory = driver.memory.impl();
    return memory.host.allocate(context, size, flags, memory.space.new_id(), out);
  });
}

// Pinned bytes go: the device must be through with them, as the real driver sees to, and the checker forgets them.
CUresult give_up(Driver& driver, ContextId context, const char* symbol, void* base, bool registered, CUresult unknown) {
  const auto find = [&]() -> const PinnedBlock* {
    const PinnedBlock* block = driver.memory.find_pinned(base);
    return block != nullptr && block->base == base && block->registered == registered ? block : nullptr;
  };
  if (find() == nullptr) return unknown;
  if (const CUresult result = driver.engine.wait_context(context); result != CUDA_SUCCESS) return result;
  const PinnedBlock* block = find();  // the wait may have let another thread in
  if (block == nullptr) return unknown;
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  const std::array ranges{ByteRange{ByteRange::Space::kPinned, begin, begin + block->size}};
  driver.engine.forget(symbol, ranges);
  HostMemory& host = driver.memory.impl().host;
  return registered ? host.unregister(base) : host.free(base);
}

CUresult register_memory(CallSite& site, void* base, std::size_t size, unsigned flags) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if ((flags & ~kRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & kRegisterUnsupported) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    Memory::Impl& memory = driver.memory.impl();
    return memory.host.register_range(context, base, size, flags, memory.space.new_id());
  });
}

}  // namespace

CUDASIM_API cuMemHostAlloc(void** out, size_t size, unsigned int flags) {
  static CallSite site{"cuMemHostAlloc"};
  return allocate(site, out, size, flags);
}

CUDASIM_API cuMemAllocHost_v2(void** out, size_t size) {
  static CallSite site{"cuMemAllocHost_v2"};
  return allocate(site, out, size, 0);
}

CUDASIM_API cuMemAllocHost(void** out, unsigned int size) {
  static CallSite site{"cuMemAllocHost"};
  return allocate(site, out, size, 0);
}

CUDASIM_API cuMemFreeHost(void* base) {
  static CallSite site{"cuMemFreeHost"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    return give_up(driver, context, site.symbol, base, false, CUDA_ERROR_INVALID_VALUE);
  });
}

CUDASIM_API cuMemHostRegister_v2(void* base, size_t size, unsigned int flags) {
  static CallSite site{"cuMemHostRegister_v2"};
  return register_memory(site, base, size, flags);
}

CUDASIM_API cuMemHostRegister(void* base, size_t size, unsigned int flags) {
  static CallSite site{"cuMemHostRegister"};
  return register_memory(site, base, size, flags);
}

CUDASIM_API cuMemHostUnregister(void* base) {
  static CallSite site{"cuMemHostUnregister"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (base == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return give_up(driver, context, site.symbol, base, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  });
}

CUDASIM_API cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* address, unsigned int flags) {
  static CallSite site{"cuMemHostGetDevicePointer_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (out == nullptr || flags != 0 || driver.memory.find_pinned(address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUdeviceptr>(address);
    return CUDA_SUCCESS;
  });
}

// No pinned memory has a 32-bit address.
CUDASIM_API cuMemHostGetDevicePointer(CUdeviceptr_v1*, void*, unsigned int) {
  static CallSite site{"cuMemHostGetDevicePointer"};
  return call(site, Needs::kContext, [](Driver&, ContextId) { return CUDA_ERROR_INVALID_VALUE; });
}

CUDASIM_API cuMemHostGetFlags(unsigned int* flags, void* address) {
  static CallSite site{"cuMemHostGetFlags"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const PinnedBlock* block = driver.memory.find_pinned(address);
    if (flags == nullptr || block == nullptr || block->registered) return CUDA_ERROR_INVALID_VALUE;
    *flags = block->flags;
    return CUDA_SUCCESS;
  });
}
