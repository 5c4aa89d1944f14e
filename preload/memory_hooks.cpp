// Hooks that serve or follow device memory. What the arena does not serve goes to the driver: An allocation is noted
// after the driver made it, a free before the driver does it; a free that the driver refuses is taken back.
#include <utility>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/process/clean_stack.h"
#include "agent/process/uncancellable.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

CUresult note_allocation(CUresult result, CUdeviceptr address, std::uint64_t bytes) noexcept {
  if (result == CUDA_SUCCESS) agent::blocks().insert(address, shm::Bytes(bytes));
  return result;
}

template <typename Free>
CUresult free_block(CUdeviceptr address, Free&& free) noexcept {
  const agent::Uncancellable scope;
  shm::Bytes size;
  const bool known = agent::blocks().erase(address, &size);
  const CUresult result = free();
  if (result != CUDA_SUCCESS && known) agent::blocks().insert(address, size);
  return result;
}

// Of a pitched block, whose pitch only the driver knows.
std::size_t least_bytes(std::size_t width, std::size_t height) noexcept {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(width, height, &bytes) ? ~std::size_t{0} : bytes;
}

// What the driver wrote, or 0 where the program gave it no place to write.
template <typename Value>
Value written(const Value* output) noexcept {
  return output != nullptr ? *output : Value{};
}

}  // namespace

CUresult cuMemAlloc(CUdeviceptr_v1* address, unsigned int bytes) noexcept {
  const CUresult result = with_relief([&] { return real<Hook::cuMemAlloc>()(address, bytes); }, bytes);
  return note_allocation(result, written(address), bytes);
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) noexcept {
  void* const return_address = __builtin_return_address(0);
  const agent::CleanStack clean(agent::arena_has_limit());
  bool by_driver = false;
  const CUresult result =
      allocate_with_relief([&] { return agent::arena_allocate(address, bytes, return_address); },
                           [&] { return real<Hook::cuMemAlloc_v2>()(address, bytes); }, bytes, &by_driver);
  return by_driver ? note_allocation(result, written(address), bytes) : result;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1* address, unsigned int* pitch, unsigned int width, unsigned int height,
                         unsigned int element) noexcept {
  const CUresult result =
      with_relief([&] { return real<Hook::cuMemAllocPitch>()(address, pitch, width, height, element); },
                  least_bytes(width, height));
  return note_allocation(result, written(address), std::uint64_t{written(pitch)} * height);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int element) noexcept {
  const CUresult result =
      with_relief([&] { return real<Hook::cuMemAllocPitch_v2>()(address, pitch, width, height, element); },
                  least_bytes(width, height));
  return note_allocation(result, written(address), written(pitch) * height);
}

CUresult cuMemFree(CUdeviceptr_v1 address) noexcept {
  return free_block(address, [&] { return real<Hook::cuMemFree>()(address); });
}

CUresult cuMemFree_v2(CUdeviceptr address) noexcept {
  const agent::CleanStack clean(agent::arena_has_limit());
  if (agent::arena_may_own(address)) {
    const CUresult refusal = agent::arena_free_refusal();
    if (refusal != CUDA_SUCCESS) [[unlikely]]
      return refusal;
  }
  const agent::Served served = agent::arena_free(address);
  if (served.handled) return served.result;
  return free_block(address, [&] { return real<Hook::cuMemFree_v2>()(address); });
}

}  // namespace memopt::preload::hooks
