// Everything that has bytes: physical device memory (one sparse memfd, counted against the capacity), the device's
// virtual address range (real mmaps), cuMemAlloc blocks, VMM reservations and mappings, pinned and registered host
// memory.
//
// Threads: called with the driver's lock held, except is_tracked(), which is lock-free.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "units.h"

namespace cudasim {

struct Config;
struct Counters;

// A block of cuMemAlloc, or of a memory pool.
struct Allocation {
  CUdeviceptr base;
  std::uint64_t size;  // as asked for
  ContextId context;   // none: of a pool
  std::uint64_t id;    // unique over the process's life
  bool sync_memops;    // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  CUmemoryPool pool = nullptr;
  ContextId made_in = ContextId::kNone;  // of a pool's block: where it was asked for
  bool managed = false;                  // cuMemAllocManaged: the host may use it too
};

struct PinnedBlock {
  std::byte* base;
  std::uint64_t size;
  unsigned flags;   // of cuMemHostAlloc or cuMemHostRegister
  bool registered;  // cuMemHostRegister: the bytes are the program's own
  ContextId context;
  std::uint64_t id;
  bool sync_memops;
};

class Memory {
 public:
  // Throws std::system_error when address space or a memfd can't be had.
  Memory(const Config& config, Counters& counters);
  ~Memory();

  // cuMemAlloc and cuMemFree, without their synchronisation (the API layer waits first). CUDA_ERROR_OUT_OF_MEMORY at
  // capacity.
  CUresult allocate(ContextId context, std::uint64_t size, CUdeviceptr* out);
  CUresult free(CUdeviceptr base);
  // The live block that holds `address` (any address inside it).
  const Allocation* find_allocation(CUdeviceptr address) const;
  // Device addresses as a whole: inside a block or a VMM mapping.
  bool is_device(CUdeviceptr address) const;
  // All of [address, address + size) is in live blocks or VMM mappings, or all of it in one pinned block. False for a
  // range that wraps around.
  bool is_device_range(CUdeviceptr address, std::uint64_t size) const;
  bool is_pinned_range(const void* address, std::uint64_t size) const;

  // The same for work that was queued earlier: blocks whose free is queued too, and all that a memory pool holds (which
  // of its bytes an operation may touch is for the checker to say).
  bool is_device_range_in_order(CUdeviceptr address, std::uint64_t size) const;

  const PinnedBlock* find_pinned(const void* address) const;

  // False: certainly neither device nor pinned memory. Lock-free, a few ns: asked for every instrumented access.
  bool is_tracked(const void* address) const;

  // Splits [address, address + size) into runs of physical device bytes and pinned bytes; untracked or unmapped bytes
  // are left out.
  void for_each_byte_range(std::uintptr_t address, std::size_t size, const std::function<void(ByteRange)>& visit) const;

  std::uint64_t capacity() const;
  std::uint64_t held() const;  // by the driver's count: 2 MiB granules taken

  // All memory of a context goes (cuCtxDestroy, primary reset).
  void release_context(ContextId context);

  struct Impl;  // memory/memory_impl.h: shared by memory/*.cpp and the api files of memory
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cudasim
