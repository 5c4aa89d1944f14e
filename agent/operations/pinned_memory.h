// Host memory that kernels can reach: page-locked and managed ranges, as the program made them. A launch that is given
// an address in one of them may do what the host sees without a wait.
//
// Any thread; noexcept. Asking is two loads and a comparison for what lies outside all ranges.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memopt::agent {

// After the driver made or registered it. `managed`: it is not to be read
// by that address, which is the device's, or of memory that the driver moves.
void pinned_memory_added(std::uint64_t address, std::size_t bytes, bool managed = false) noexcept;
// Before the driver takes it back. Returns its size for pinned_memory_added(), should the driver refuse; 0 if unknown.
std::size_t pinned_memory_removed(std::uint64_t address) noexcept;

extern std::uint64_t pinned_memory_begin, pinned_memory_bytes;  // around all ranges; only grows
bool is_in_pinned_range(std::uint64_t address) noexcept;

inline bool is_pinned_memory(std::uint64_t address) noexcept {
  return address - __atomic_load_n(&pinned_memory_begin, __ATOMIC_ACQUIRE) <
             __atomic_load_n(&pinned_memory_bytes, __ATOMIC_RELAXED) &&
         is_in_pinned_range(address);
}

// From the address to the end of the page-locked range that it is in; 0: there is none, or it is managed.
std::size_t page_locked_bytes_from(std::uint64_t address) noexcept;

void forget_pinned_memory_after_fork() noexcept;

}  // namespace memopt::agent
