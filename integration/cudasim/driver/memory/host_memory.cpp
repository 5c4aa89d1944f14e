#include "memory/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

namespace cudasim {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
// Below and above the device's range; see there.
constexpr std::array<std::uintptr_t, 2> kHostHints{0x5f0000000000, 0x7f0000000000};

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::uint64_t page_up(std::uint64_t value) { return (value + page_size() - 1) / page_size() * page_size(); }

// Every page of the range is mapped in this process.
bool is_mapped(std::uintptr_t begin, std::uint64_t size) {
  std::array<unsigned char, 4096> pages;
  const std::uintptr_t end = begin + size;
  for (std::uintptr_t at = begin / page_size() * page_size(); at < end;) {
    const std::uint64_t step = std::min<std::uint64_t>(page_up(end - at), pages.size() * page_size());
    if (mincore(reinterpret_cast<void*>(at), step, pages.data()) != 0) return false;
    at += step;
  }
  return true;
}

}  // namespace

HostMemory::HostMemory() : arena_(128 * kGiB, kGiB, kHostHints) {}

CUresult HostMemory::allocate(ContextId context, std::uint64_t size, unsigned flags, std::uint64_t id, void** out) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size > arena_.end() - arena_.begin()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t pages = page_up(size);
  // One page between blocks is never mapped: running over the end faults.
  const auto base = arena_.ranges().take(pages + page_size(), page_size());
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!arena_.map_private(*base, pages)) {
    arena_.ranges().give(*base, pages + page_size());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto* address = reinterpret_cast<std::byte*>(*base);
  blocks_.emplace(*base, PinnedBlock{address, size, flags, false, context, id, false});
  *out = address;
  return CUDA_SUCCESS;
}

CUresult HostMemory::free(void* base) {
  const auto block = blocks_.find(reinterpret_cast<std::uintptr_t>(base));
  if (block == blocks_.end() || block->second.registered) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t pages = page_up(block->second.size);
  arena_.unmap(block->first, pages);
  arena_.ranges().give(block->first, pages + page_size());
  blocks_.erase(block);
  return CUDA_SUCCESS;
}

CUresult HostMemory::register_range(ContextId context, void* base, std::uint64_t size, unsigned flags,
                                    std::uint64_t id) {
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  if (begin == 0 || size == 0 || begin + size < begin) return CUDA_ERROR_INVALID_VALUE;
  const PinnedBlock* next = first_behind(base);
  if (next != nullptr && reinterpret_cast<std::uintptr_t>(next->base) < begin + size) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  if (!is_mapped(begin, size)) return CUDA_ERROR_INVALID_VALUE;
  blocks_.emplace(begin, PinnedBlock{static_cast<std::byte*>(base), size, flags, true, context, id, false});
  registered_.insert(begin, begin + size);
  return CUDA_SUCCESS;
}

CUresult HostMemory::unregister(void* base) {
  const auto block = blocks_.find(reinterpret_cast<std::uintptr_t>(base));
  if (block == blocks_.end() || !block->second.registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  registered_.erase(block->first);
  blocks_.erase(block);
  return CUDA_SUCCESS;
}

void HostMemory::release_context(ContextId context) {
  std::vector<PinnedBlock> mine;
  for (const auto& [base, block] : blocks_) {
    if (block.context == context) mine.push_back(block);
  }
  for (const PinnedBlock& block : mine) {
    if (block.registered) {
      unregister(block.base);
    } else {
      free(block.base);
    }
  }
}

const PinnedBlock* HostMemory::find(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto it = blocks_.upper_bound(at);
  if (it == blocks_.begin()) return nullptr;
  --it;
  return at - it->first < it->second.size ? &it->second : nullptr;
}

PinnedBlock* HostMemory::find(const void* address) {
  return const_cast<PinnedBlock*>(std::as_const(*this).find(address));
}

const PinnedBlock* HostMemory::first_behind(const void* address) const {
  if (const PinnedBlock* inside = find(address)) return inside;
  const auto it = blocks_.lower_bound(reinterpret_cast<std::uintptr_t>(address));
  return it == blocks_.end() ? nullptr : &it->second;
}

}  // namespace cudasim
