// The VMM part of the device: address reservations, physical handles, mappings and their access rights.
//
// A handle's physical memory lives until it is released as often as it was created and retained, and unmapped
// everywhere. Mapping only notes what lies where; the pages become reachable by set_access(), which really maps or
// protects them. Reservations, handles and mappings belong to the process, not to a context.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memory/device_space.h"
#include "units.h"

namespace cudasim {

class VirtualMemory {
 public:
  using HandleId = CUmemGenericAllocationHandle;

  struct Reservation {
    CUdeviceptr base;
    std::uint64_t size;
  };
  struct Mapping {
    CUdeviceptr base;
    std::uint64_t size;
    HandleId handle;
    Access access;
    bool reachable;  // access was set at least once: the pages are mapped
    bool sync_memops;
  };
  struct Handle {
    CUmemAllocationProp properties;
    std::uint64_t size;
    std::vector<Extent> extents;
    std::uint64_t references;  // created, retained
    std::uint64_t mappings;
    std::uint64_t id;
  };

  explicit VirtualMemory(DeviceSpace& space) : space_(space) {}

  CUresult reserve(std::uint64_t size, std::uint64_t alignment, CUdeviceptr hint, CUdeviceptr* out);
  CUresult free_reservation(CUdeviceptr base, std::uint64_t size);

  CUresult create(std::uint64_t size, const CUmemAllocationProp& properties, HandleId* out);
  // `freed` gets the physical bytes that are gone with this call, if any.
  CUresult release(HandleId handle, std::vector<ByteRange>& freed);
  CUresult retain(CUdeviceptr address, HandleId* out);
  const Handle* find_handle(HandleId handle) const;  // null when it is not referenced (mappings alone do not count)

  CUresult map(CUdeviceptr address, std::uint64_t size, std::uint64_t offset, HandleId handle);
  CUresult unmap(CUdeviceptr address, std::uint64_t size, std::vector<ByteRange>& freed);
  CUresult set_access(CUdeviceptr address, std::uint64_t size, Access access);

  const Mapping* find_mapping(CUdeviceptr address) const;
  Mapping* find_mapping(CUdeviceptr address);
  const Handle& handle_of(const Mapping& mapping) const { return handles_.at(mapping.handle); }
  std::optional<Reservation> find_reservation(CUdeviceptr address) const;

 private:
  using Mappings = std::map<CUdeviceptr, Mapping>;

  // The whole mappings that make up exactly [address, address + size); empty range when there are no such.
  std::pair<Mappings::iterator, Mappings::iterator> whole_mappings(CUdeviceptr address, std::uint64_t size);
  void free_if_unused(HandleId handle, std::vector<ByteRange>& freed);

  DeviceSpace& space_;
  std::map<CUdeviceptr, std::uint64_t> reservations_;
  std::unordered_map<HandleId, Handle> handles_;
  Mappings mappings_;
  HandleId last_handle_ = 0;
};

}  // namespace cudasim
