// The program's stream-ordered pools (cuMemAllocAsync): which of them the arena serves in the driver's place, and what
// they answer about their use. A pool is served if its memory could as well be anybody's on our device: the device's
// default pool, and those that the program makes without export, without a size of their own and for no other device.
// The driver keeps every attribute that memopt has no part in (thresholds, ways of reuse).
//
// Not thread-safe: guarded by the arena's lock. Makes driver calls only while a pool is seen for the first time.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "agent/process/driver.h"

namespace memopt::agent {

class MemoryPools {
 public:
  explicit MemoryPools(const Driver& driver) : driver_(driver) {}
  MemoryPools(const MemoryPools&) = delete;
  MemoryPools& operator=(const MemoryPools&) = delete;

  // Pools of this device are served from now on, if it has any.
  void start(CUdevice device) noexcept;

  // The pool of cuMemAllocAsync on our device; null if it is not served.
  CUmemoryPool current() noexcept;
  void current_may_have_changed() noexcept { asked_current_ = false; }

  bool serves(CUmemoryPool pool) const noexcept;

  // What the program does with its pools, also before start().
  void created(CUmemoryPool pool, const CUmemPoolProps& properties) noexcept;
  void destroyed(CUmemoryPool pool) noexcept;
  // The program lets a device use the pool. Once that is another than its own, it is no longer served; blocks stay.
  void accessible(CUmemoryPool pool, CUdevice device) noexcept;

  // Blocks that are served in a pool's place.
  void allocated(CUmemoryPool pool, std::uint64_t bytes) noexcept;
  void freed(CUmemoryPool pool, std::uint64_t bytes) noexcept;

  // Adds our part to the driver's answer about an amount of memory; `held` are bytes that the arena keeps for whoever
  // comes next. Other attributes stay as they are.
  void add_use(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t held, std::uint64_t* value) noexcept;
  // The program has set a high watermark back.
  void reset_high(CUmemoryPool pool, CUmemPool_attribute attribute) noexcept;

 private:
  struct Pool {
    CUdevice device = 0;
    bool served = true;
    std::uint64_t used = 0;  // bytes of live blocks
    std::uint64_t used_high = 0;
    std::uint64_t reserved_high = 0;
  };

  Pool* find(CUmemoryPool handle) noexcept;
  const Pool* find(CUmemoryPool handle) const noexcept { return const_cast<MemoryPools*>(this)->find(handle); }
  void add(CUmemoryPool handle, CUdevice device) noexcept;

  const Driver& driver_;
  CUdevice device_ = 0;
  bool supported_ = false;
  bool asked_current_ = false;
  CUmemoryPool default_ = nullptr;
  CUmemoryPool current_ = nullptr;
  std::unordered_map<CUmemoryPool, Pool> pools_;
  std::pair<const CUmemoryPool, Pool>* last_ = nullptr;  // of them, that was found last
};

}  // namespace memopt::agent
