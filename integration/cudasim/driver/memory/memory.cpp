#include "memory/memory.h"

#include <algorithm>

#include "memory/memory_impl.h"

namespace cudasim {

Memory::Memory(const Config& config, Counters& counters) : impl_(std::make_unique<Impl>(config, counters)) {}
Memory::~Memory() = default;

CUresult Memory::allocate(ContextId context, std::uint64_t size, CUdeviceptr* out) {
  return impl_->blocks.allocate(context, size, out);
}

CUresult Memory::free(CUdeviceptr base) { return impl_->blocks.free(base); }

const Allocation* Memory::find_allocation(CUdeviceptr address) const {
  const Impl& impl = *impl_;
  return impl.blocks.find(address);
}

bool Memory::is_device(CUdeviceptr address) const { return is_device_range(address, 1); }

bool Memory::is_device_range(CUdeviceptr address, std::uint64_t size) const {
  const Impl& impl = *impl_;
  if (address + size < address) return false;
  if (const Allocation* block = impl.blocks.find(address)) return block->base + block->size - address >= size;
  // A range may go on from one mapping into the next.
  for (CUdeviceptr at = address;;) {
    const VirtualMemory::Mapping* mapping = impl.vmm.find_mapping(at);
    if (mapping == nullptr) return false;
    at = mapping->base + mapping->size;
    if (at - address >= size) return true;
  }
}

bool Memory::is_device_range_in_order(CUdeviceptr address, std::uint64_t size) const {
  const Impl& impl = *impl_;
  return is_device_range(address, size) || impl.blocks.is_retired(address, size) || impl.space.is_pooled(address, size);
}

const PinnedBlock* Memory::find_pinned(const void* address) const {
  const Impl& impl = *impl_;
  return impl.host.find(address);
}

bool Memory::is_pinned_range(const void* address, std::uint64_t size) const {
  const PinnedBlock* block = find_pinned(address);
  if (block == nullptr) return false;
  const auto skipped = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - block->base);
  return block->size - skipped >= size;
}

bool Memory::is_tracked(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return impl_->space.arena.contains(at) || impl_->host.is_tracked(at);
}

void Memory::for_each_byte_range(std::uintptr_t address, std::size_t size,
                                 const std::function<void(ByteRange)>& visit) const {
  const Impl& impl = *impl_;
  if (size == 0) return;
  const std::uintptr_t end = address + std::min<std::uintptr_t>(size, UINTPTR_MAX - address);
  if (address < impl.space.arena.end() && end > impl.space.arena.begin()) {
    impl.space.for_each_extent(address, end - address, [&](Extent extent) {
      visit({ByteRange::Space::kDevice, extent.offset, extent.offset + extent.size});
    });
  }
  for (std::uintptr_t at = address; at < end;) {
    const PinnedBlock* block = impl.host.first_behind(reinterpret_cast<const void*>(at));
    if (block == nullptr) break;
    const auto begin = reinterpret_cast<std::uintptr_t>(block->base);
    if (begin >= end) break;
    const std::uintptr_t stop = std::min(begin + block->size, end);
    visit({ByteRange::Space::kPinned, std::max(begin, at), stop});
    at = stop;
  }
}

std::uint64_t Memory::capacity() const { return impl_->space.physical.capacity(); }
std::uint64_t Memory::held() const { return impl_->space.physical.held(); }

void Memory::release_context(ContextId context) {
  impl_->blocks.release_context(context);
  impl_->host.release_context(context);
}

}  // namespace cudasim
