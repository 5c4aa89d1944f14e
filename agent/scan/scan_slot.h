// What a scan of device memory reads and writes: a slot of page-locked memory that the host and the scan's kernel
// (scan_kernel.h) share. The kernel reads what the host has filled in, and adds what it finds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memopt::agent {

// Bytes of a block; both multiples of 8.
struct ScanRange {
  std::uint64_t base;
  std::uint64_t words;
};

struct ScanSlot {
  static constexpr std::size_t kMostRanges = 32;
  static constexpr std::size_t kMostWords = 510;

  std::uint32_t found;   // words in the range of addresses that is looked for; more than there is room for, perhaps
  std::uint32_t serial;  // of the scan, written by the kernel: it has run
  std::uint64_t unused;
  ScanRange ranges[kMostRanges];
  std::uint64_t words[kMostWords];
};
static_assert(sizeof(ScanSlot) == 4608);

// Of words for which a slot has no room, the kernel marks the page: a byte each of a table that all slots share, of the
// whole range of addresses.
inline constexpr std::uint32_t kScanPageShift = 21;

}  // namespace memopt::agent
