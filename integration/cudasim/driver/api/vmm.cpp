// Virtual memory management: reserve, create, map, set access, unmap, release. A call's modelled cost grows with the
// number of handles it names: for cuMemSetAccess and cuMemUnmap these are the mappings in the range. None of these
// waits for queued work. Sharing with other processes (cuMemExportToShareableHandle and its import) is left to the
// stubs: CUDA_ERROR_NOT_SUPPORTED.
#define __CUDA_API_VERSION_INTERNAL
#include <vector>

#include "api/call.h"
#include "memory/memory_impl.h"

using namespace cudasim;

namespace {

constexpr int kDevice = 0;

CUresult check_location(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    return location.id == kDevice ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult check_properties(const CUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_location(prop->location); result != CUDA_SUCCESS) return result;
  // A handle that may be exported is made as any other; the export itself is not supported.
  const bool exportable = prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE && !exportable) return CUDA_ERROR_NOT_SUPPORTED;
  if (prop->allocFlags.usage != 0) return CUDA_ERROR_NOT_SUPPORTED;  // tile pools, decompression buffers
  return CUDA_SUCCESS;
}

std::int64_t mappings_in(const VirtualMemory& vmm, CUdeviceptr address, std::uint64_t size) {
  std::int64_t count = 0;
  for (CUdeviceptr at = address; at - address < size;) {
    const VirtualMemory::Mapping* mapping = vmm.find_mapping(at);
    if (mapping == nullptr) break;
    ++count;
    at = mapping->base + mapping->size;
  }
  return count;
}

// One handle is charged with the call; the others once the range is known.
void charge_others(Driver& driver, const CallSite& site, std::int64_t handles) {
  if (handles > 1) driver.engine.charge(site.cost.per_unit * (handles - 1));
}

}  // namespace

CUDASIM_API cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr hint,
                                unsigned long long flags) {
  static CallSite site{"cuMemAddressReserve"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    ++driver.counters.totals.vmm_calls;
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.impl().vmm.reserve(size, alignment, hint, out);
  });
}

CUDASIM_API cuMemAddressFree(CUdeviceptr base, size_t size) {
  static CallSite site{"cuMemAddressFree"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    ++driver.counters.totals.vmm_calls;
    return driver.memory.impl().vmm.free_reservation(base, size);
  });
}

CUDASIM_API cuMemCreate(CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp* prop,
                        unsigned long long flags) {
  static CallSite site{"cuMemCreate"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    ++driver.counters.totals.vmm_calls;
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_properties(prop); result != CUDA_SUCCESS) return result;
    return driver.memory.impl().vmm.create(size, *prop, out);
  });
}

CUDASIM_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  static CallSite site{"cuMemRelease"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    ++driver.counters.totals.vmm_calls;
    std::vector<ByteRange> freed;
    const CUresult result = driver.memory.impl().vmm.release(handle, freed);
    if (!freed.empty()) driver.engine.forget(site.symbol, freed);
    return result;
  });
}

CUDASIM_API cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                     unsigned long long flags) {
  static CallSite site{"cuMemMap"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    ++driver.counters.totals.vmm_calls;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.impl().vmm.map(address, size, offset, handle);
  });
}

CUDASIM_API cuMemUnmap(CUdeviceptr address, size_t size) {
  static CallSite site{"cuMemUnmap"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    ++driver.counters.totals.vmm_calls;
    VirtualMemory& vmm = driver.memory.impl().vmm;
    charge_others(driver, site, mappings_in(vmm, address, size));
    std::vector<ByteRange> freed;
    const CUresult result = vmm.unmap(address, size, freed);
    if (!freed.empty()) driver.engine.forget(site.symbol, freed);
    return result;
  });
}

CUDASIM_API cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* descriptions, size_t count) {
  static CallSite site{"cuMemSetAccess"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    ++driver.counters.totals.vmm_calls;
    if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    Access access = Access::kNone;
    for (std::size_t i = 0; i < count; ++i) {
      if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
      if (descriptions[i].location.id != kDevice) return CUDA_ERROR_INVALID_DEVICE;
      switch (descriptions[i].flags) {
        case CU_MEM_ACCESS_FLAGS_PROT_NONE:
          access = Access::kNone;
          break;
        case CU_MEM_ACCESS_FLAGS_PROT_READ:
          access = Access::kRead;
          break;
        case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
          access = Access::kReadWrite;
          break;
        default:
          return CUDA_ERROR_INVALID_VALUE;
      }
    }
    VirtualMemory& vmm = driver.memory.impl().vmm;
    charge_others(driver, site, mappings_in(vmm, address, size));
    return vmm.set_access(address, size, access);
  });
}

CUDASIM_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  static CallSite site{"cuMemGetAccess"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (location->id != kDevice) return CUDA_ERROR_INVALID_DEVICE;
    const VirtualMemory::Mapping* mapping = driver.memory.impl().vmm.find_mapping(address);
    if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (mapping->access) {
      case Access::kNone:
        *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        break;
      case Access::kRead:
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
        break;
      case Access::kReadWrite:
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        break;
    }
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                          CUmemAllocationGranularity_flags option) {
  static CallSite site{"cuMemGetAllocationGranularity"};
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult result = check_properties(prop); result != CUDA_SUCCESS) return result;
    *granularity = kGranule;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  static CallSite site{"cuMemGetAllocationPropertiesFromHandle"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    const VirtualMemory::Handle* found = driver.memory.impl().vmm.find_handle(handle);
    if (prop == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *prop = found->properties;
    prop->allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;  // asked for or not
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  static CallSite site{"cuMemRetainAllocationHandle"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.impl().vmm.retain(reinterpret_cast<CUdeviceptr>(address), out);
  });
}
