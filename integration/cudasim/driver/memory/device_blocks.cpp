#include "memory/device_blocks.h"

#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace cudasim {
namespace {

constexpr std::uint64_t round_up(std::uint64_t size, std::uint64_t to) { return (size + to - 1) / to * to; }

}  // namespace

CUresult DeviceBlocks::allocate(ContextId context, std::uint64_t size, CUdeviceptr* out) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size > space_.physical.capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr base = 0;
  const CUresult result = size < kSharedBelow ? place_in_slab(context, round_up(size, kBlockAlignment), &base)
                                              : take_granules(round_up(size, kGranule), &base);
  if (result != CUDA_SUCCESS) return result;
  blocks_.emplace(base, Allocation{base, size, context, space_.new_id(), false});
  space_.block_added(size);
  *out = base;
  return CUDA_SUCCESS;
}

CUresult DeviceBlocks::take_granules(std::uint64_t size, CUdeviceptr* out) {
  auto extents = space_.take(size);
  if (extents.empty()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto address = space_.arena.ranges().take(size + kGranule, kGranule);
  if (!address) {
    space_.give(extents);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  space_.add_region(*address, {size, std::move(extents)});
  if (!space_.map_region(*address, Access::kReadWrite)) {
    give_granules(*address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = *address;
  return CUDA_SUCCESS;
}

void DeviceBlocks::give_granules(CUdeviceptr base) {
  const auto region = space_.regions().find(base);
  const std::uint64_t size = region->second.size;
  const std::vector<Extent> extents = region->second.extents;
  space_.arena.unmap(base, size);
  space_.remove_region(base);
  space_.give(extents);
  space_.arena.ranges().give(base, size + kGranule);
}

CUresult DeviceBlocks::place_in_slab(ContextId context, std::uint64_t size, CUdeviceptr* out) {
  for (auto& [base, slab] : slabs_) {
    if (slab.context != context) continue;
    if (const auto place = slab.free.take(size, kBlockAlignment)) {
      *out = *place;
      return CUDA_SUCCESS;
    }
  }
  CUdeviceptr base = 0;
  if (const CUresult result = take_granules(kGranule, &base); result != CUDA_SUCCESS) return result;
  auto& slab = slabs_.emplace(base, Slab{context, FreeRanges(base, kGranule)}).first->second;
  *out = *slab.free.take(size, kBlockAlignment);
  return CUDA_SUCCESS;
}

CUresult DeviceBlocks::free(CUdeviceptr base) {
  const auto block = blocks_.find(base);
  if (block == blocks_.end()) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t size = block->second.size;
  blocks_.erase(block);
  space_.block_removed(size);
  if (size >= kSharedBelow) {
    give_granules(base);
    return CUDA_SUCCESS;
  }
  const std::uint64_t taken = round_up(size, kBlockAlignment);
  const auto slab = slabs_.find(base & ~(kGranule - 1));
  if (space_.physical.poison()) {
    // The slab stays reachable. A block with granules of its own is not poisoned here: nobody can see its bytes before
    // they are taken again.
    std::memset(reinterpret_cast<void*>(base), std::to_integer<int>(kPoison), taken);
  }
  slab->second.free.give(base, taken);
  if (slab->second.free.all_free()) {
    give_granules(slab->first);
    slabs_.erase(slab);
  }
  return CUDA_SUCCESS;
}

const Allocation* DeviceBlocks::find(CUdeviceptr address) const {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  --it;
  return address - it->first < it->second.size ? &it->second : nullptr;
}

Allocation* DeviceBlocks::find(CUdeviceptr address) {
  return const_cast<Allocation*>(std::as_const(*this).find(address));
}

void DeviceBlocks::release_context(ContextId context) {
  std::vector<CUdeviceptr> bases;
  for (const auto& [base, block] : blocks_) {
    if (block.context == context) bases.push_back(base);
  }
  for (const CUdeviceptr base : bases) free(base);
}

}  // namespace cudasim
