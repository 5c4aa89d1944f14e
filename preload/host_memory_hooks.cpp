// Hooks of host memory that kernels can reach: page-locked, registered, managed.
#include "agent/operations/pinned_memory.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

std::uint64_t address_of(const void* memory) noexcept { return reinterpret_cast<std::uint64_t>(memory); }

// A kernel may know the memory by another address than the host does.
std::uint64_t other_address(void* memory) noexcept {
  CUdeviceptr address = 0;
  const CUresult result = real<Hook::cuMemHostGetDevicePointer_v2>()(&address, memory, 0);
  return result == CUDA_SUCCESS && address != address_of(memory) ? address : 0;
}

void added(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  agent::pinned_memory_added(address_of(memory), bytes);
  agent::pinned_memory_added(other_address(memory), bytes, true);
}

// Taken out before the driver does it: by the time it has, the address may be somebody else's.
template <typename Free>
CUresult remove(void* memory, Free&& free) noexcept {
  if (memory == nullptr) return free();
  const std::uint64_t address = address_of(memory);
  const std::size_t bytes = agent::pinned_memory_removed(address);
  const std::uint64_t other = bytes != 0 ? other_address(memory) : 0;
  if (other != 0) agent::pinned_memory_removed(other);
  const CUresult result = free();
  if (result != CUDA_SUCCESS && bytes != 0) {
    agent::pinned_memory_added(address, bytes);
    agent::pinned_memory_added(other, bytes, true);
  }
  return result;
}

}  // namespace

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags) noexcept {
  const CUresult result = real<Hook::cuMemHostAlloc>()(memory, bytes, flags);
  if (result == CUDA_SUCCESS && memory != nullptr) added(*memory, bytes);
  return result;
}

CUresult cuMemAllocHost(void** memory, unsigned int bytes) noexcept {
  const CUresult result = real<Hook::cuMemAllocHost>()(memory, bytes);
  if (result == CUDA_SUCCESS && memory != nullptr) added(*memory, bytes);
  return result;
}

CUresult cuMemAllocHost_v2(void** memory, size_t bytes) noexcept {
  const CUresult result = real<Hook::cuMemAllocHost_v2>()(memory, bytes);
  if (result == CUDA_SUCCESS && memory != nullptr) added(*memory, bytes);
  return result;
}

CUresult cuMemFreeHost(void* memory) noexcept {
  return remove(memory, [&] { return real<Hook::cuMemFreeHost>()(memory); });
}

CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned int flags) noexcept {
  const CUresult result = real<Hook::cuMemHostRegister>()(memory, bytes, flags);
  if (result == CUDA_SUCCESS) added(memory, bytes);
  return result;
}

CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned int flags) noexcept {
  const CUresult result = real<Hook::cuMemHostRegister_v2>()(memory, bytes, flags);
  if (result == CUDA_SUCCESS) added(memory, bytes);
  return result;
}

CUresult cuMemHostUnregister(void* memory) noexcept {
  return remove(memory, [&] { return real<Hook::cuMemHostUnregister>()(memory); });
}

// Its free is cuMemFree: the range stays until its addresses are noted anew.
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) noexcept {
  const CUresult result = with_relief([&] { return real<Hook::cuMemAllocManaged>()(address, bytes, flags); }, bytes);
  if (result == CUDA_SUCCESS && address != nullptr) agent::pinned_memory_added(*address, bytes, true);
  return result;
}

}  // namespace memopt::preload::hooks
