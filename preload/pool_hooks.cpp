// Stream-ordered allocation (cuMemAllocAsync) and its pools. The driver keeps the pools; what the arena serves in a
// pool's place is added to what the pool answers. What the arena does not serve is the driver's, and is counted.
#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/process/clean_stack.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

// `pool` null: the device's current one.
template <Hook hook, typename... Pool>
CUresult allocate(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, agent::StreamName stream, void* return_address,
                  Pool... explicit_pool) noexcept {
  const agent::CleanStack clean(agent::arena_has_limit());
  // A pool that is named, and null, is wrong, and the driver's to answer.
  const bool served_here = sizeof...(explicit_pool) == 0 || pool != nullptr;
  const auto call = [&] { return real<hook>()(address, bytes, explicit_pool..., stream.handle); };
  bool by_driver = true;
  const CUresult result =
      served_here ? allocate_with_relief(
                        [&] { return agent::arena_allocate_async(address, bytes, pool, stream, return_address); }, call,
                        bytes, &by_driver)
                  : with_relief(call, bytes);
  if (by_driver && result == CUDA_SUCCESS && address != nullptr) {
    const std::uint64_t made = *address;
    if (!agent::arena_note_async(made, bytes, stream, return_address)) {
      agent::blocks().insert(made, shm::Bytes(bytes));
    }
  }
  return result;
}

template <Hook hook>
CUresult free(CUdeviceptr address, agent::StreamName stream) noexcept {
  const agent::CleanStack clean(agent::arena_has_limit());
  const agent::Served served = agent::arena_free_async(address, stream);
  if (served.handled) return served.result;
  shm::Bytes size;
  const bool known = agent::blocks().erase(address, &size);
  const CUresult result = real<hook>()(address, stream.handle);
  if (result != CUDA_SUCCESS && known) agent::blocks().insert(address, size);
  return result;
}

bool is_amount(CUmemPool_attribute attribute) noexcept {
  return attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ||
         attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) noexcept {
  return allocate<Hook::cuMemAllocAsync>(address, bytes, nullptr, {stream, false}, __builtin_return_address(0));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) noexcept {
  return allocate<Hook::cuMemAllocAsync_ptsz>(address, bytes, nullptr, {stream, true}, __builtin_return_address(0));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) noexcept {
  return allocate<Hook::cuMemAllocFromPoolAsync>(address, bytes, pool, {stream, false}, __builtin_return_address(0),
                                                 pool);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) noexcept {
  return allocate<Hook::cuMemAllocFromPoolAsync_ptsz>(address, bytes, pool, {stream, true}, __builtin_return_address(0),
                                                      pool);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) noexcept {
  return free<Hook::cuMemFreeAsync>(address, {stream, false});
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) noexcept {
  return free<Hook::cuMemFreeAsync_ptsz>(address, {stream, true});
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) noexcept {
  const CUresult result = with_relief([&] { return real<Hook::cuMemPoolCreate>()(pool, properties); });
  if (result == CUDA_SUCCESS && pool != nullptr && properties != nullptr) agent::note_pool_created(*pool, *properties);
  return result;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) noexcept {
  const CUresult result = real<Hook::cuMemPoolDestroy>()(pool);
  if (result == CUDA_SUCCESS) agent::note_pool_destroyed(pool);
  return result;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) noexcept {
  const CUresult result = real<Hook::cuMemPoolSetAccess>()(pool, access, count);
  for (size_t i = 0; result == CUDA_SUCCESS && access != nullptr && i < count; ++i) {
    agent::note_pool_access(pool, access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE ? access[i].location.id : -1);
  }
  return result;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) noexcept {
  const CUresult result = real<Hook::cuMemPoolGetAttribute>()(pool, attribute, value);
  if (result == CUDA_SUCCESS && value != nullptr && is_amount(attribute)) {
    agent::arena_pool_use(pool, attribute, static_cast<std::uint64_t*>(value));
  }
  return result;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) noexcept {
  const CUresult result = real<Hook::cuMemPoolSetAttribute>()(pool, attribute, value);
  if (result == CUDA_SUCCESS && is_amount(attribute)) agent::arena_pool_reset(pool, attribute);
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) noexcept {
  const CUresult result = real<Hook::cuMemPoolTrimTo>()(pool, keep);
  if (result == CUDA_SUCCESS) agent::arena_pool_trim(pool, keep);
  return result;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) noexcept {
  const CUresult result = real<Hook::cuDeviceSetMemPool>()(device, pool);
  if (result == CUDA_SUCCESS) agent::note_current_pool_changed();
  return result;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) noexcept {
  const CUresult result = real<Hook::cuMemSetMemPool>()(location, type, pool);
  if (result == CUDA_SUCCESS) agent::note_current_pool_changed();
  return result;
}

}  // namespace memopt::preload::hooks
