#include "memory/virtual_memory.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace cudasim {
namespace {

bool is_granular(std::uint64_t value) { return value % kGranule == 0; }

}  // namespace

CUresult VirtualMemory::reserve(std::uint64_t size, std::uint64_t alignment, CUdeviceptr hint, CUdeviceptr* out) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (size == 0 || size % page != 0 || hint % page != 0) return CUDA_ERROR_INVALID_VALUE;
  if (alignment != 0 && !std::has_single_bit(alignment)) return CUDA_ERROR_INVALID_VALUE;
  if (size > space_.arena.end() - space_.arena.begin()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t aligned = std::max(alignment, kGranule);
  const std::uint64_t taken = (size + kGranule - 1) / kGranule * kGranule;
  std::optional<std::uint64_t> base;
  if (hint != 0 && hint % aligned == 0 && space_.arena.ranges().take_at(hint, taken)) base = hint;
  if (!base) base = space_.arena.ranges().take(taken, aligned);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations_.emplace(*base, size);
  *out = *base;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::free_reservation(CUdeviceptr base, std::uint64_t size) {
  const auto reservation = reservations_.find(base);
  if (reservation == reservations_.end() || reservation->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapping = mappings_.lower_bound(base);
  if (mapping != mappings_.end() && mapping->first < base + size) return CUDA_ERROR_INVALID_VALUE;  // still in use
  reservations_.erase(reservation);
  space_.arena.ranges().give(base, (size + kGranule - 1) / kGranule * kGranule);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::create(std::uint64_t size, const CUmemAllocationProp& properties, HandleId* out) {
  if (size == 0 || !is_granular(size)) return CUDA_ERROR_INVALID_VALUE;
  auto extents = space_.take(size);
  if (extents.empty()) return CUDA_ERROR_OUT_OF_MEMORY;
  const HandleId id = ++last_handle_;
  handles_.emplace(id, Handle{properties, size, std::move(extents), 1, 0, space_.new_id()});
  space_.handle_added(size);
  *out = id;
  return CUDA_SUCCESS;
}

void VirtualMemory::free_if_unused(HandleId id, std::vector<ByteRange>& freed) {
  const auto it = handles_.find(id);
  const Handle& handle = it->second;
  if (handle.references != 0 || handle.mappings != 0) return;
  for (const Extent& extent : handle.extents) {
    freed.push_back({ByteRange::Space::kDevice, extent.offset, extent.offset + extent.size});
  }
  space_.give(handle.extents);
  space_.handle_removed(handle.size);
  handles_.erase(it);
}

CUresult VirtualMemory::release(HandleId id, std::vector<ByteRange>& freed) {
  const auto handle = handles_.find(id);
  if (handle == handles_.end() || handle->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  --handle->second.references;
  free_if_unused(id, freed);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::retain(CUdeviceptr address, HandleId* out) {
  const Mapping* mapping = find_mapping(address);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++handles_.at(mapping->handle).references;
  *out = mapping->handle;
  return CUDA_SUCCESS;
}

const VirtualMemory::Handle* VirtualMemory::find_handle(HandleId id) const {
  const auto handle = handles_.find(id);
  return handle != handles_.end() && handle->second.references != 0 ? &handle->second : nullptr;
}

CUresult VirtualMemory::map(CUdeviceptr address, std::uint64_t size, std::uint64_t offset, HandleId id) {
  const auto handle = handles_.find(id);
  if (handle == handles_.end() || handle->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0 || size != handle->second.size || !is_granular(address)) return CUDA_ERROR_INVALID_VALUE;
  const auto reservation = find_reservation(address);
  if (!reservation || reservation->base + reservation->size - address < size) return CUDA_ERROR_INVALID_VALUE;
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  if (find_mapping(address) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  mappings_.emplace(address, Mapping{address, size, id, Access::kNone, false, false});
  space_.add_region(address, {size, handle->second.extents});
  ++handle->second.mappings;
  return CUDA_SUCCESS;
}

std::pair<VirtualMemory::Mappings::iterator, VirtualMemory::Mappings::iterator> VirtualMemory::whole_mappings(
    CUdeviceptr address, std::uint64_t size) {
  const std::pair nothing{mappings_.end(), mappings_.end()};
  const auto first = mappings_.find(address);
  if (first == mappings_.end() || size == 0) return nothing;
  std::uint64_t covered = 0;
  auto last = first;
  for (; last != mappings_.end() && covered < size && last->first == address + covered; ++last)
    covered += last->second.size;
  return covered == size ? std::pair{first, last} : nothing;
}

CUresult VirtualMemory::unmap(CUdeviceptr address, std::uint64_t size, std::vector<ByteRange>& freed) {
  const auto [first, last] = whole_mappings(address, size);
  if (first == last) return CUDA_ERROR_INVALID_VALUE;
  space_.arena.unmap(address, size);
  for (auto it = first; it != last; ++it) {
    space_.remove_region(it->first);
    --handles_.at(it->second.handle).mappings;
    free_if_unused(it->second.handle, freed);
  }
  mappings_.erase(first, last);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::set_access(CUdeviceptr address, std::uint64_t size, Access access) {
  const auto [first, last] = whole_mappings(address, size);
  if (first == last) return CUDA_ERROR_INVALID_VALUE;
  for (auto it = first; it != last; ++it) {
    Mapping& mapping = it->second;
    if (mapping.access == access) continue;
    const bool done = mapping.reachable ? space_.arena.protect(mapping.base, mapping.size, access)
                                        : space_.map_region(mapping.base, access);
    // The machine's limit on mappings, most likely. What was changed before stays changed, as after an error of a real
    // driver.
    if (!done) return CUDA_ERROR_OUT_OF_MEMORY;
    mapping.reachable = true;
    mapping.access = access;
  }
  return CUDA_SUCCESS;
}

const VirtualMemory::Mapping* VirtualMemory::find_mapping(CUdeviceptr address) const {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return nullptr;
  --it;
  return address - it->first < it->second.size ? &it->second : nullptr;
}

VirtualMemory::Mapping* VirtualMemory::find_mapping(CUdeviceptr address) {
  return const_cast<Mapping*>(std::as_const(*this).find_mapping(address));
}

std::optional<VirtualMemory::Reservation> VirtualMemory::find_reservation(CUdeviceptr address) const {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return std::nullopt;
  --it;
  if (address - it->first >= it->second) return std::nullopt;
  return Reservation{it->first, it->second};
}

}  // namespace cudasim
