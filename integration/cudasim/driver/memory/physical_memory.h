// The device's bytes: one sparse memfd whose offsets are the physical addresses, given out in 2 MiB granules up to
// exactly the capacity. Space is never lost to fragmentation: what is taken may lie in several extents, as the pages of
// a device do.
//
// Contents. With poison, bytes that are taken are filled with kPoison first, so that no program can lean on zeros or on
// what a freed block held. That makes them resident on the host: the host's RAM follows what is held. Only the first
// kPoisonedHeld bytes that are held are filled; beyond them taken bytes read as zero and cost RAM when they are
// touched, so that a program may hold a whole large device on a small machine. Freed bytes stay resident up to
// kIdleKept in all (a training step takes them again), the rest go back at once.
//
// Pages. A granule is a huge page of the host's where the kernel can make one (Linux 6.1, whatever
// /sys/kernel/mm/transparent_hugepage says): to map it or to take it back is then one entry of a page table instead of
// 512, and to fill it faults once. Without poison that is done for the first kHugeHeld bytes that are held.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/address_arena.h"
#include "memory/free_ranges.h"
#include "units.h"

namespace cudasim {

struct Extent {
  std::uint64_t offset;
  std::uint64_t size;
};

inline constexpr std::byte kPoison{0xCB};
inline constexpr std::uint64_t kPoisonedHeld = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kIdleKept = std::uint64_t{512} << 20;
inline constexpr std::uint64_t kHugeHeld = std::uint64_t{1} << 30;

class PhysicalMemory {
 public:
  PhysicalMemory(std::uint64_t capacity, bool poison);  // throws std::system_error
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  // `size` is a multiple of the granule. Empty when that much is not free.
  std::vector<Extent> take(std::uint64_t size);
  void give(const std::vector<Extent>& extents);

  int file() const { return file_; }
  // Whether its pages are in the host's RAM: to map them at once is cheaper then than a fault of each.
  InRam in_ram(const Extent& extent) const;
  // The program gets at its bytes from now on, and may touch them.
  void mapped(const Extent& extent);
  bool poison() const { return poison_; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t held() const { return capacity_ - free_.free_bytes(); }
  std::uint64_t resident_idle() const { return resident_idle_; }  // free bytes that still cost host RAM

 private:
  bool prepare(const Extent& extent, bool fill);
  void make_huge(const Extent& extent);
  void make_run_huge(std::uint64_t begin, std::uint64_t end);
  bool poison_granule(std::uint64_t offset, bool resident);
  bool write_poison(std::uint64_t offset);
  void drop(const Extent& extent);

  std::uint64_t capacity_;
  bool poison_;
  int file_ = -1;
  std::byte* window_ = nullptr;  // the first bytes of the file, for filling; on a granule's boundary
  std::uint64_t window_size_ = 0;
  FreeRanges free_;
  std::vector<bool> resident_;  // by granule: may have pages in RAM
  std::vector<bool> whole_;     // has all of them there, or had when it was taken last
  std::vector<bool> mapped_;    // has been mapped since it was taken
  std::uint64_t resident_idle_ = 0;
  bool can_be_huge_ = true;
};

}  // namespace cudasim
