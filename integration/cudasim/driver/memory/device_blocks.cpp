#include "memory/device_blocks.h"

#include <iterator>
#include <utility>
#include <vector>

#include "memory/device_bytes.h"

namespace cudasim {
namespace {

constexpr std::uint64_t round_up(std::uint64_t size, std::uint64_t to) { return (size + to - 1) / to * to; }

}  // namespace

CUresult DeviceBlocks::allocate(ContextId context, std::uint64_t size, CUdeviceptr* out) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size > space_.physical.capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr base = 0;
  const CUresult result = size < kSharedBelow ? place_in_slab(context, round_up(size, kBlockAlignment), &base)
                                              : space_.take_mapped(round_up(size, kGranule), &base);
  if (result != CUDA_SUCCESS) return result;
  blocks_.emplace(base, Allocation{base, size, context, space_.new_id(), false});
  space_.block_added(size);
  *out = base;
  return CUDA_SUCCESS;
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
  if (const CUresult result = space_.take_mapped(kGranule, &base); result != CUDA_SUCCESS) return result;
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
  give(base, size);
  return CUDA_SUCCESS;
}

void DeviceBlocks::give(CUdeviceptr base, std::uint64_t size) {
  if (size >= kSharedBelow) {
    space_.give_mapped(base);
    return;
  }
  const std::uint64_t taken = round_up(size, kBlockAlignment);
  const auto slab = slabs_.find(base & ~(kGranule - 1));
  if (space_.physical.poison()) {
    // The slab stays reachable. A block with granules of its own is not poisoned here: nobody can see its bytes before
    // they are taken again.
    fill_device_bytes(reinterpret_cast<void*>(base), kPoison, taken);
  }
  slab->second.free.give(base, taken);
  if (slab->second.free.all_free()) {
    space_.give_mapped(slab->first);
    slabs_.erase(slab);
  }
}

void DeviceBlocks::retire(CUdeviceptr base) {
  const auto block = blocks_.find(base);
  retired_.emplace(base, block->second.size);
  space_.block_removed(block->second.size);
  blocks_.erase(block);
}

void DeviceBlocks::finish(CUdeviceptr base) {
  const auto block = retired_.find(base);
  if (block == retired_.end()) return;
  const std::uint64_t size = block->second;
  retired_.erase(block);
  give(base, size);
}

bool DeviceBlocks::is_retired(CUdeviceptr address, std::uint64_t size) const {
  auto block = retired_.upper_bound(address);
  if (block == retired_.begin()) return false;
  --block;
  const std::uint64_t skipped = address - block->first;
  return skipped < block->second && size <= block->second - skipped;
}

void DeviceBlocks::add_pooled(CUdeviceptr base, std::uint64_t size, CUmemoryPool pool, ContextId made_in) {
  blocks_.emplace(base, Allocation{base, size, ContextId::kNone, space_.new_id(), false, pool, made_in});
  space_.block_added(size);
}

void DeviceBlocks::remove_pooled(CUdeviceptr base) {
  const auto block = blocks_.find(base);
  space_.block_removed(block->second.size);
  blocks_.erase(block);
}

std::vector<Allocation> DeviceBlocks::pooled_made_in(ContextId context) const {
  std::vector<Allocation> found;
  for (const auto& [base, block] : blocks_) {
    if (block.pool != nullptr && block.made_in == context) found.push_back(block);
  }
  return found;
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
