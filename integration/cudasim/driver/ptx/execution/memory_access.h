// What loads, stores and atomics ask of an address.
#pragma once
#include "ptx/execution/block_run.h"

namespace cudasim::ptx {

// Private: the thread's own, or the launch's parameters.
enum class MemoryKind : std::uint8_t { kGlobal, kShared, kPrivate, kGeneric };

template <MemoryKind kKind>
constexpr bool touches_global() {
  return kKind == MemoryKind::kGlobal || kKind == MemoryKind::kGeneric;
}

// Neither reported nor held back while a launch is sampled.
template <MemoryKind kKind>
bool is_private(const Warp& warp, std::uint64_t address) {
  if constexpr (kKind == MemoryKind::kGeneric) return warp.block.is_shared(address) || warp.block.is_local(address);
  return kKind != MemoryKind::kGlobal;
}

// The address in the process. Throws Stopped for one that is not aligned, or lies outside of shared memory.
template <MemoryKind kKind>
std::uint64_t checked_address(Warp& warp, const Step& step, std::uint64_t address, std::uint32_t bytes, Access access) {
  if ((address & (bytes - 1)) != 0) throw Stopped{Stop::kMisaligned, address, step.source, ""};
  if constexpr (kKind == MemoryKind::kShared) {
    const std::uint64_t size = warp.block.shared_bytes;
    // A shared address has 32 bits, whatever register holds it.
    address &= 0xffffffff;
    if (address > size || size - address < bytes)
      throw Stopped{Stop::kAddress, address, step.source, "of shared memory"};
    return warp.block.shared.address() + address;
  }
  if constexpr (touches_global<kKind>()) {
    if (warp.block.observer.touched != nullptr && !warp.block.sampling && !is_private<kKind>(warp, address))
      warp.block.observer.touched(warp.block.observer.context, address, bytes, access);
  }
  return address;
}

void count_sectors(Warp& warp, const Step& step, Mask mask, std::uint32_t bytes);

}  // namespace cudasim::ptx
