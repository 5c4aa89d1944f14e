// Host memory that the device may reach: pinned blocks, allocated by the driver in an address range of its own, and the
// program's own ranges that it registered. Device address and host address are the same (unified addressing), also for
// registered and write-combined memory.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>

#include "memory/address_arena.h"
#include "memory/memory.h"
#include "memory/registered_ranges.h"

namespace cudasim {

class HostMemory {
 public:
  HostMemory();

  CUresult allocate(ContextId context, std::uint64_t size, unsigned flags, std::uint64_t id, void** out);
  CUresult free(void* base);
  CUresult register_range(ContextId context, void* base, std::uint64_t size, unsigned flags, std::uint64_t id);
  CUresult unregister(void* base);
  void release_context(ContextId context);

  const PinnedBlock* find(const void* address) const;
  PinnedBlock* find(const void* address);
  // The first block that ends behind `address`; null when there is none.
  const PinnedBlock* first_behind(const void* address) const;

  bool is_tracked(std::uintptr_t address) const {  // lock-free
    return arena_.contains(address) || registered_.contains(address);
  }

 private:
  AddressArena arena_;
  RegisteredRanges registered_;
  std::map<std::uintptr_t, PinnedBlock> blocks_;
};

}  // namespace cudasim
