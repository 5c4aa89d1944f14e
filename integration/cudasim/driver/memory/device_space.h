// What cuMemAlloc blocks and VMM mappings share: physical memory, the device's address range, and which bytes lie
// behind an address.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "memory/address_arena.h"
#include "memory/physical_memory.h"
#include "units.h"

namespace cudasim {

struct Config;
struct Counters;

class DeviceSpace {
 public:
  DeviceSpace(const Config& config, Counters& counters);

  struct Region {
    std::uint64_t size;
    std::vector<Extent> extents;  // in address order
    bool pooled = false;          // of a memory pool
  };

  PhysicalMemory physical;
  AddressArena arena;

  // Physical memory, with the driver's count. take() is empty when the capacity does not allow it.
  std::vector<Extent> take(std::uint64_t size);
  void give(const std::vector<Extent>& extents);

  // Asked when the capacity does not allow a take: makes at least so many bytes free if it can. True: something was
  // given back, try again.
  std::function<bool(std::uint64_t size)> reclaim;

  // Own granules with addresses of their own, reachable, followed by a granule that is never mapped. `size` is a
  // multiple of the granule.
  CUresult take_mapped(std::uint64_t size, CUdeviceptr* out, bool pooled = false);
  void give_mapped(CUdeviceptr base);

  // Which bytes lie at [address, address + size); no access to them yet.
  void add_region(std::uintptr_t address, Region region);
  void remove_region(std::uintptr_t address);
  const std::map<std::uintptr_t, Region>& regions() const { return regions_; }
  bool is_pooled(std::uintptr_t address, std::uint64_t size) const;  // all of it, in one region
  // Physical bytes of the parts of [address, address + size) that have any, in address order.
  void for_each_extent(std::uintptr_t address, std::uint64_t size, const std::function<void(Extent)>& visit) const;

  // Makes a region really reachable; on failure nothing of it is mapped.
  [[nodiscard]] bool map_region(std::uintptr_t address, Access access);

  // What the program asked for and has not freed.
  void block_added(std::uint64_t size);
  void block_removed(std::uint64_t size);
  void handle_added(std::uint64_t size);
  void handle_removed(std::uint64_t size);

  std::uint64_t new_id() { return ++last_id_; }

 private:
  void live_changed();

  Counters& counters_;
  std::map<std::uintptr_t, Region> regions_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_blocks_ = 0;
  std::uint64_t live_blocks_2mib_ = 0;
  std::uint64_t last_id_ = 0;
};

}  // namespace cudasim
