// Hooks of the program's own virtual memory management: what it makes is counted. Blocks that memopt serves lie in
// mappings of its own, which are none of the program's: what is asked of them, or done to them, is asked of an address
// that was never given out, so that the driver answers as it does for a block of cuMemAlloc.
#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

// Neither mapped nor reserved.
constexpr CUdeviceptr kNowhere = 1;

// Is any of it in mappings of ours?
bool is_ours(CUdeviceptr address, std::size_t bytes) noexcept {
  return agent::arena_maps(address) || (bytes > 1 && agent::arena_maps(address + (bytes - 1)));
}

CUdeviceptr of_the_program(CUdeviceptr address, std::size_t bytes) noexcept {
  return is_ours(address, bytes) ? kNowhere : address;
}

}  // namespace

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) noexcept {
  const auto create = [&] { return real<Hook::cuMemCreate>()(handle, bytes, properties, flags); };
  const bool of_host = properties != nullptr && properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  const CUresult result = of_host ? create() : with_relief(create, bytes);
  // Host memory can be made this way too; it is no device's.
  if (result == CUDA_SUCCESS && handle != nullptr && properties != nullptr &&
      properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    agent::physical_memory().created(*handle, shm::Bytes(bytes));
  }
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) noexcept {
  const auto release = agent::physical_memory().release(handle);
  const CUresult result = real<Hook::cuMemRelease>()(handle);
  if (result != CUDA_SUCCESS) agent::physical_memory().undo_release(release);
  return result;
}

// Libraries that share memory ask for the handle behind any pointer (NCCL does, of buffers that are registered with
// it).
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) noexcept {
  const CUdeviceptr asked = of_the_program(reinterpret_cast<CUdeviceptr>(address), 1);
  const CUresult result = real<Hook::cuMemRetainAllocationHandle>()(handle, reinterpret_cast<void*>(asked));
  if (result == CUDA_SUCCESS && handle != nullptr) {
    agent::physical_memory().retained(*handle, reinterpret_cast<agent::DeviceAddress>(address));
  }
  return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) noexcept {
  const CUdeviceptr at = of_the_program(address, bytes);
  const CUresult result = with_relief([&] { return real<Hook::cuMemMap>()(at, bytes, offset, handle, flags); });
  if (result == CUDA_SUCCESS) agent::physical_memory().mapped(address, shm::Bytes(bytes), handle);
  return result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) noexcept {
  if (is_ours(address, bytes)) return real<Hook::cuMemUnmap>()(kNowhere, bytes);
  const auto unmapped = agent::physical_memory().unmap(address, shm::Bytes(bytes));
  const CUresult result = real<Hook::cuMemUnmap>()(address, bytes);
  if (result != CUDA_SUCCESS) agent::physical_memory().undo_unmap(unmapped);
  return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) noexcept {
  const CUdeviceptr at = of_the_program(address, bytes);
  return with_relief([&] { return real<Hook::cuMemSetAccess>()(at, bytes, access, count); });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) noexcept {
  return real<Hook::cuMemGetAccess>()(flags, location, of_the_program(address, 1));
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) noexcept {
  return real<Hook::cuMemAddressFree>()(of_the_program(address, bytes), bytes);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t multicast_offset, CUdeviceptr address,
                             size_t bytes, unsigned long long flags) noexcept {
  const CUdeviceptr at = of_the_program(address, bytes);
  return with_relief([&] { return real<Hook::cuMulticastBindAddr>()(multicast, multicast_offset, at, bytes, flags); });
}

}  // namespace memopt::preload::hooks
