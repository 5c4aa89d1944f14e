// What a pointer is: attributes of device blocks, VMM reservations and mappings, pinned and registered host memory.
#define __CUDA_API_VERSION_INTERNAL
#include <cstring>
#include <optional>

#include "api/call.h"
#include "contexts.h"
#include "device_attributes.h"
#include "memory/memory_impl.h"

using namespace cudasim;

namespace {

// All that is known of an address.
struct Pointer {
  CUdeviceptr address = 0;
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  ContextId context = ContextId::kNone;  // none: VMM and memory pools, which belong to no context
  CUdeviceptr range_begin = 0;           // block, or reservation
  std::uint64_t range_size = 0;
  bool mapped = false;
  CUdeviceptr mapping_begin = 0;
  std::uint64_t mapping_size = 0;
  std::uint64_t id = 0;
  CUmemAllocationHandleType handle_types = CU_MEM_HANDLE_TYPE_NONE;
  CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
  bool host = false;  // the host may use the address
  bool managed = false;
  bool rdma = false;
  bool* sync_memops = nullptr;
  CUmemoryPool pool = nullptr;
};

CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS access_flags(Access access) {
  switch (access) {
    case Access::kNone:
      return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
    case Access::kRead:
      return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;
    case Access::kReadWrite:
      return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
  }
  return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

Pointer block_pointer(CUdeviceptr base, std::uint64_t size, ContextId context, std::uint64_t id, bool& sync_memops) {
  Pointer pointer;
  pointer.context = context;
  pointer.range_begin = pointer.mapping_begin = base;
  pointer.range_size = pointer.mapping_size = size;
  pointer.mapped = true;
  pointer.id = id;
  pointer.sync_memops = &sync_memops;
  return pointer;
}

bool has(const Driver& driver, CUdevice_attribute attribute) {
  return device_attribute(driver.config.device, attribute).value_or(0) != 0;
}

std::optional<Pointer> look_at(Driver& driver, CUdeviceptr address) {
  Memory::Impl& memory = driver.memory.impl();
  if (Allocation* block = memory.blocks.find(address)) {
    Pointer pointer = block_pointer(block->base, block->size, block->context, block->id, block->sync_memops);
    pointer.address = address;
    pointer.rdma = block->pool == nullptr && has(driver, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
    pointer.pool = block->pool;
    pointer.managed = pointer.host = block->managed;
    return pointer;
  }
  if (PinnedBlock* block = memory.host.find(reinterpret_cast<void*>(address))) {
    Pointer pointer = block_pointer(reinterpret_cast<CUdeviceptr>(block->base), block->size, block->context, block->id,
                                    block->sync_memops);
    pointer.address = address;
    pointer.type = CU_MEMORYTYPE_HOST;
    pointer.host = true;
    return pointer;
  }
  const auto reservation = memory.vmm.find_reservation(address);
  if (!reservation) return std::nullopt;
  Pointer pointer;
  pointer.address = address;
  pointer.range_begin = reservation->base;
  pointer.range_size = reservation->size;
  pointer.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  if (VirtualMemory::Mapping* mapping = memory.vmm.find_mapping(address)) {
    const VirtualMemory::Handle& handle = memory.vmm.handle_of(*mapping);
    pointer.mapped = true;
    pointer.mapping_begin = mapping->base;
    pointer.mapping_size = mapping->size;
    pointer.id = handle.id;
    pointer.handle_types = handle.properties.requestedHandleTypes;
    pointer.rdma = handle.properties.allocFlags.gpuDirectRDMACapable != 0 &&
                   has(driver, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    pointer.access = access_flags(mapping->access);
    pointer.sync_memops = &mapping->sync_memops;
  }
  return pointer;
}

template <class Value>
CUresult give(void* out, Value value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

// A null `pointer` asks for what cuPointerGetAttributes says about an address that is not CUDA's: nothing, and mostly
// 0.
CUresult attribute_of(Driver& driver, const Pointer* pointer, CUpointer_attribute attribute, void* out) {
  static const Pointer kUnknown{.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE};
  const Pointer& known = pointer == nullptr ? kUnknown : *pointer;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      Context* context = driver.contexts->find(known.context);
      if (context == nullptr) return give<CUcontext>(out, nullptr);
      return give<CUcontext>(out, Contexts::handle(*context));
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give<unsigned>(out, pointer == nullptr ? 0u : static_cast<unsigned>(known.type));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give<CUdeviceptr>(out, known.address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (pointer != nullptr && !known.host) return CUDA_ERROR_INVALID_VALUE;
      return give<void*>(out, reinterpret_cast<void*>(known.address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give<unsigned>(out, known.sync_memops != nullptr && *known.sync_memops ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return give<unsigned long long>(out, known.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give<unsigned>(out, known.managed ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give<int>(out, pointer == nullptr ? -2 : 0);  // CU_DEVICE_INVALID
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give<unsigned>(out, 0);  // there is no IPC
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give<CUdeviceptr>(out, known.range_begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give<size_t>(out, known.range_size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give<unsigned>(out, known.mapped ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return give<unsigned long long>(out, static_cast<unsigned long long>(known.handle_types));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return give<unsigned>(out, known.rdma ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return give<unsigned>(out, static_cast<unsigned>(known.access));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return give<CUmemoryPool>(out, known.pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give<size_t>(out, known.mapping_size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give<CUdeviceptr>(out, known.mapping_begin);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return give<unsigned>(out, 0);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return CUDA_ERROR_NOT_SUPPORTED;  // for a kernel driver that is not there
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUDASIM_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  static CallSite site{"cuPointerGetAttribute"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId context) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::optional<Pointer> pointer = look_at(driver, address);
    if (!pointer) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER && context == ContextId::kNone)
      return CUDA_ERROR_INVALID_CONTEXT;
    return attribute_of(driver, &*pointer, attribute, data);
  });
}

CUDASIM_API cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                   CUdeviceptr address) {
  static CallSite site{"cuPointerGetAttributes"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    }
    const std::optional<Pointer> pointer = look_at(driver, address);
    for (unsigned i = 0; i < count; ++i) {
      CUresult result = attribute_of(driver, pointer ? &*pointer : nullptr, attributes[i], data[i]);
      // Here a device block has no host pointer without that being an error.
      if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && result != CUDA_SUCCESS)
        result = give<void*>(data[i], nullptr);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  static CallSite site{"cuPointerSetAttribute"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    std::optional<Pointer> pointer = look_at(driver, address);
    if (!pointer || pointer->sync_memops == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    if (wanted != 0) {
      // Synchronous operations that the host did not wait for are waited for now.
      if (const CUresult result = driver.engine.wait_context(context); result != CUDA_SUCCESS) return result;
      pointer = look_at(driver, address);
      if (!pointer || pointer->sync_memops == nullptr) return CUDA_ERROR_INVALID_VALUE;
    }
    *pointer->sync_memops = wanted != 0;
    return CUDA_SUCCESS;
  });
}
