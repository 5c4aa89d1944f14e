// The kernel with which memopt looks for addresses in device memory (agent/scan/scan_kernel.h), for the simulated
// device.
//
// It reads what other work may be writing, on purpose, and what it finds then does not matter: so that the checker sees
// none of it, all is read by a function of the C library. Memory that was never written is not there yet, and would be
// made by reading it: it is passed over.
#include <cudasim/kernel_plugin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "agent/scan/scan_slot.h"

namespace {

using memopt::agent::ScanRange;
using memopt::agent::ScanSlot;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kWords = kPage / sizeof(std::uint64_t);

struct Looked {
  std::uint8_t* pages;
  std::uint64_t begin;
  std::uint64_t bytes;
};

// Which pages of a range have been written, asked for many at once. Where that can't be told, all.
class WrittenPages {
 public:
  explicit WrittenPages(std::uint64_t end) : end_(end) {}

  bool has(std::uint64_t page) {
    if (first_ == 0 || page - first_ >= kAtOnce * kPage) look(page);
    return (there_[(page - first_) / kPage] & 1) != 0;
  }

 private:
  static constexpr std::size_t kAtOnce = 512;

  void look(std::uint64_t page) {
    first_ = page;
    const std::size_t bytes = std::min<std::uint64_t>(kAtOnce * kPage, end_ - page);
    if (mincore(reinterpret_cast<void*>(page), bytes, there_) != 0) std::memset(there_, 1, sizeof(there_));
  }

  const std::uint64_t end_;
  std::uint64_t first_ = 0;
  unsigned char there_[kAtOnce] = {};
};

void look_at(ScanSlot& slot, const std::uint64_t* words, std::size_t count, const Looked& range) {
  for (std::size_t i = 0; i < count; ++i) {
    if (words[i] - range.begin >= range.bytes) continue;
    if (const std::uint32_t at = slot.found++; at < ScanSlot::kMostWords) {
      slot.words[at] = words[i];
    } else {
      constexpr std::uint8_t kThere = 1;
      std::memcpy(range.pages + ((words[i] - range.begin) >> memopt::agent::kScanPageShift), &kThere, 1);
    }
  }
}

}  // namespace

// A whole range by the first thread of its blocks.
extern "C" __global__ void memopt_scan_words(ScanSlot* shared, std::uint8_t* pages, std::uint64_t begin,
                                             std::uint64_t bytes, std::uint32_t serial) {
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  ScanSlot slot;
  std::memcpy(&slot, shared, sizeof(slot));
  slot.serial = serial;
  const ScanRange range = slot.ranges[blockIdx.y];
  WrittenPages written(range.base + range.words * sizeof(std::uint64_t));
  std::uint64_t words[kWords];
  for (std::uint64_t at = 0; at < range.words;) {
    const std::uint64_t address = range.base + at * sizeof(std::uint64_t);
    const std::uint64_t count = std::min(range.words - at, (kPage - address % kPage) / sizeof(std::uint64_t));
    if (written.has(address / kPage * kPage)) {
      std::memcpy(words, reinterpret_cast<const void*>(address), count * sizeof(std::uint64_t));
      look_at(slot, words, count, {pages, begin, bytes});
    }
    at += count;
  }
  std::memcpy(shared, &slot, sizeof(slot));
}

CUDASIM_KERNEL(memopt_scan_words,
               [](cudasim::Grid grid, ScanSlot*, std::uint8_t*, std::uint64_t, std::uint64_t, std::uint32_t) {
                 return cudasim::Cost{.bytes = grid.threads() * 16 * sizeof(std::uint64_t)};
               });
