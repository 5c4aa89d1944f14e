// Physical memory of the driver's virtual memory management (cuMemCreate): live as long as a handle or a mapping refers
// to it.
//
// Any thread; one lock, since each of these calls costs the driver microseconds. Imported memory belongs to its
// exporter and is not entered, so its handles and mappings are unknown here, which is no error.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "agent/status/block_table.h"
#include "shm/units.h"

namespace memopt::agent {

class PhysicalMemory {
 public:
  using Handle = std::uint64_t;  // CUmemGenericAllocationHandle

  explicit PhysicalMemory(MemoryGauge& gauge) : gauge_(gauge) {}
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  // What undo_release and undo_unmap need, should the driver refuse.
  struct Release {
    bool known = false;
    Handle handle = 0;
    std::uint64_t id = 0;
    shm::Bytes size;
  };
  struct Unmapped {
    DeviceAddress address;
    std::uint64_t size;
    std::uint64_t id;
    shm::Bytes allocation_size;
  };

  // After the driver's success.
  void created(Handle handle, shm::Bytes size) noexcept;
  void retained(Handle handle,
                DeviceAddress mapped_at) noexcept;  // the driver may give the memory another handle than before
  void mapped(DeviceAddress address, shm::Bytes size, Handle handle) noexcept;

  // Before the driver's call: once it has returned, another thread may be given the same handle or address.
  Release release(Handle handle) noexcept;
  void undo_release(const Release& release) noexcept;
  std::vector<Unmapped> unmap(DeviceAddress address, shm::Bytes size) noexcept;
  void undo_unmap(const std::vector<Unmapped>& unmapped) noexcept;

  void reset_after_fork() noexcept;

 private:
  struct Allocation {
    shm::Bytes size;
    std::uint64_t handles = 0;
    std::uint64_t mappings = 0;
  };
  struct Mapping {
    std::uint64_t size;
    std::uint64_t id;
  };

  Allocation& bring_back(std::uint64_t id, shm::Bytes size);
  void drop_if_unused(std::uint64_t id);

  MemoryGauge& gauge_;
  int lock_ = 0;
  std::uint64_t next_id_ = 1;
  // The driver reuses handle values once a handle is released, though its memory may still be mapped: so allocations
  // have names of our own.
  std::unordered_map<Handle, std::uint64_t> by_handle_;
  std::unordered_map<std::uint64_t, Allocation> allocations_;
  std::map<DeviceAddress, Mapping> mappings_;
};

}  // namespace memopt::agent
