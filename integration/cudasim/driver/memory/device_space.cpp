#include "memory/device_space.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "config.h"
#include "counters.h"

namespace cudasim {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
// Far from where the kernel puts programs and libraries; the second is inside what ThreadSanitizer lets a program map.
// Both are fine for AddressSanitizer.
constexpr std::array<std::uintptr_t, 2> kDeviceHints{0x600000000000, 0x7e8000000000};

// Roomy for virtual layouts, whatever the device.
std::uint64_t arena_size(std::uint64_t capacity) {
  return std::bit_ceil(std::clamp(4 * capacity, 512 * kGiB, 16384 * kGiB));
}

}  // namespace

DeviceSpace::DeviceSpace(const Config& config, Counters& counters)
    : physical(config.device.capacity / kGranule * kGranule, config.poison),
      arena(arena_size(physical.capacity()), 4 * kGiB, kDeviceHints),
      counters_(counters) {}

std::vector<Extent> DeviceSpace::take(std::uint64_t size) {
  auto extents = physical.take(size);
  if (extents.empty() && reclaim && reclaim(size)) extents = physical.take(size);
  if (!extents.empty()) counters_.held_changed(physical.held());
  return extents;
}

void DeviceSpace::give(const std::vector<Extent>& extents) {
  physical.give(extents);
  counters_.held_changed(physical.held());
}

CUresult DeviceSpace::take_mapped(std::uint64_t size, CUdeviceptr* out, bool pooled) {
  auto extents = take(size);
  if (extents.empty()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto address = arena.ranges().take(size + kGranule, kGranule);
  if (!address) {
    give(extents);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  add_region(*address, {size, std::move(extents), pooled});
  if (!map_region(*address, Access::kReadWrite)) {
    give_mapped(*address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = *address;
  return CUDA_SUCCESS;
}

void DeviceSpace::give_mapped(CUdeviceptr base) {
  const auto region = regions_.find(base);
  const std::uint64_t size = region->second.size;
  const std::vector<Extent> extents = region->second.extents;
  arena.unmap(base, size);
  remove_region(base);
  give(extents);
  arena.ranges().give(base, size + kGranule);
}

void DeviceSpace::add_region(std::uintptr_t address, Region region) { regions_.emplace(address, std::move(region)); }

void DeviceSpace::remove_region(std::uintptr_t address) { regions_.erase(address); }

bool DeviceSpace::is_pooled(std::uintptr_t address, std::uint64_t size) const {
  auto region = regions_.upper_bound(address);
  if (region == regions_.begin()) return false;
  --region;
  const std::uint64_t skipped = address - region->first;
  return region->second.pooled && skipped <= region->second.size && size <= region->second.size - skipped;
}

void DeviceSpace::for_each_extent(std::uintptr_t address, std::uint64_t size,
                                  const std::function<void(Extent)>& visit) const {
  const std::uintptr_t end = address + size;
  auto it = regions_.upper_bound(address);
  if (it != regions_.begin()) --it;
  for (; it != regions_.end() && it->first < end; ++it) {
    std::uintptr_t at = it->first;
    for (const Extent& extent : it->second.extents) {
      const std::uintptr_t begin = std::max(at, address);
      const std::uintptr_t stop = std::min(at + extent.size, end);
      if (begin < stop) visit({extent.offset + (begin - at), stop - begin});
      at += extent.size;
    }
  }
}

bool DeviceSpace::map_region(std::uintptr_t address, Access access) {
  const Region& region = regions_.at(address);
  std::uintptr_t at = address;
  for (const Extent& extent : region.extents) {
    if (!arena.map_file(at, extent.size, physical.file(), extent.offset, access, physical.in_ram(extent))) {
      arena.unmap(address, region.size);
      return false;
    }
    if (access != Access::kNone) physical.mapped(extent);
    at += extent.size;
  }
  return true;
}

void DeviceSpace::block_added(std::uint64_t size) {
  live_bytes_ += size;
  ++live_blocks_;
  if (size >= kGranule) ++live_blocks_2mib_;
  live_changed();
}

void DeviceSpace::block_removed(std::uint64_t size) {
  live_bytes_ -= size;
  --live_blocks_;
  if (size >= kGranule) --live_blocks_2mib_;
  live_changed();
}

void DeviceSpace::handle_added(std::uint64_t size) {
  live_bytes_ += size;
  live_changed();
}

void DeviceSpace::handle_removed(std::uint64_t size) {
  live_bytes_ -= size;
  live_changed();
}

void DeviceSpace::live_changed() { counters_.live_changed(live_bytes_, live_blocks_, live_blocks_2mib_); }

}  // namespace cudasim
