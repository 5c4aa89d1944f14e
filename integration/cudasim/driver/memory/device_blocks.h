// cuMemAlloc: blocks below 1 MiB share slabs of one granule, larger ones have granules of their own, as the real
// driver's do. Addresses are taken lowest first and are free again at once, as with the real driver; a granule that is
// never mapped follows each block or slab, so that running over the end faults.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <vector>

#include "memory/device_space.h"
#include "memory/memory.h"

namespace cudasim {

inline constexpr std::uint64_t kBlockAlignment = 512;
inline constexpr std::uint64_t kSharedBelow = 1u << 20;

class DeviceBlocks {
 public:
  explicit DeviceBlocks(DeviceSpace& space) : space_(space) {}

  CUresult allocate(ContextId context, std::uint64_t size, CUdeviceptr* out);
  CUresult free(CUdeviceptr base);
  const Allocation* find(CUdeviceptr address) const;
  Allocation* find(CUdeviceptr address);
  void release_context(ContextId context);

  // A block whose free is queued: no block any more, but its bytes stay until finish().
  void retire(CUdeviceptr base);
  void finish(CUdeviceptr base);
  bool is_retired(CUdeviceptr address, std::uint64_t size) const;  // all of it, in one such block

  // Blocks of memory pools: known here, their bytes belong to the pool.
  void add_pooled(CUdeviceptr base, std::uint64_t size, CUmemoryPool pool, ContextId made_in);
  void remove_pooled(CUdeviceptr base);
  std::vector<Allocation> pooled_made_in(ContextId context) const;

 private:
  struct Slab {
    ContextId context;
    FreeRanges free;
  };

  void give(CUdeviceptr base, std::uint64_t size);
  CUresult place_in_slab(ContextId context, std::uint64_t size, CUdeviceptr* out);

  DeviceSpace& space_;
  std::map<CUdeviceptr, Allocation> blocks_;
  std::map<CUdeviceptr, std::uint64_t> retired_;  // sizes
  std::map<CUdeviceptr, Slab> slabs_;
};

}  // namespace cudasim
