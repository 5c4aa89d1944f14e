#include "memory/address_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "units.h"

namespace cudasim {
namespace {

int protection(Access access) {
  switch (access) {
    case Access::kNone:
      return PROT_NONE;
    case Access::kRead:
      return PROT_READ;
    case Access::kReadWrite:
      return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// A plain hint, not MAP_FIXED_NOREPLACE: a sanitizer that can't have the address asks the kernel for 0 instead, which
// together with a fixed address is the null page, and root is given it.
std::uintptr_t reserve_at(std::uintptr_t hint, std::uint64_t size) {
  void* got = mmap(reinterpret_cast<void*>(hint), size, PROT_NONE, kReserve, -1, 0);
  if (got == MAP_FAILED) return 0;
  if (reinterpret_cast<std::uintptr_t>(got) == hint) return hint;
  munmap(got, size);
  return 0;
}

std::uintptr_t reserve_anywhere(std::uint64_t size) {
  void* got = mmap(nullptr, size + kGranule, PROT_NONE, kReserve, -1, 0);
  if (got == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<std::uintptr_t>(got);
  const std::uintptr_t aligned = (begin + kGranule - 1) & ~(kGranule - 1);
  if (aligned != begin) munmap(got, aligned - begin);
  const std::uint64_t tail = begin + kGranule - aligned;
  if (tail != 0) munmap(reinterpret_cast<void*>(aligned + size), tail);
  return aligned;
}

}  // namespace

AddressArena::AddressArena(std::uint64_t size, std::uint64_t least, std::span<const std::uintptr_t> hints)
    : ranges_(0, 0) {
  int error = ENOMEM;
  for (std::uint64_t wanted = size; begin_ == 0 && wanted >= least; wanted /= 2) {
    for (const std::uintptr_t hint : hints) {
      if (begin_ == 0) begin_ = reserve_at(hint, wanted);
    }
    if (begin_ == 0) begin_ = reserve_anywhere(wanted);
    if (begin_ == 0) error = errno;
    size_ = wanted;
  }
  if (begin_ == 0)
    throw std::system_error(error, std::generic_category(), "reserving the simulated device's address range");
  ranges_ = FreeRanges(begin_, size_);
}

AddressArena::~AddressArena() { munmap(reinterpret_cast<void*>(begin_), size_); }

namespace {

#ifdef MADV_POPULATE_READ
constexpr std::uint64_t kPage = 4096;

bool half_is_in_ram(std::uintptr_t granule) {
  std::array<unsigned char, kGranule / kPage> pages{};
  if (mincore(reinterpret_cast<void*>(granule), kGranule, pages.data()) != 0) return false;
  const auto there = std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return (one & 1) != 0; });
  return static_cast<std::size_t>(there) >= pages.size() / 2;
}

// As if read, which maps many pages of a file at a time; as if written, each would be a fault of its own.
void map_pages(std::uintptr_t address, std::uint64_t size, InRam in_ram) {
  if (in_ram == InRam::kYes) madvise(reinterpret_cast<void*>(address), size, MADV_POPULATE_READ);
  for (std::uintptr_t at = address; in_ram == InRam::kPerhaps && at < address + size; at += kGranule) {
    if (half_is_in_ram(at)) madvise(reinterpret_cast<void*>(at), kGranule, MADV_POPULATE_READ);
  }
}
#endif

}  // namespace

bool AddressArena::map_file(std::uintptr_t address, std::uint64_t size, int file, std::uint64_t offset, Access access,
                            [[maybe_unused]] InRam in_ram) {
  void* const at = reinterpret_cast<void*>(address);
  const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  if (mmap(at, size, protection(access), flags, file, static_cast<off_t>(offset)) == MAP_FAILED) return false;
#ifdef MADV_POPULATE_READ
  if (access != Access::kNone) map_pages(address, size, in_ram);
#endif
  return true;
}

bool AddressArena::map_private(std::uintptr_t address, std::uint64_t size) {
  void* const at = reinterpret_cast<void*>(address);
  if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  madvise(at, size, MADV_HUGEPAGE);  // fewer faults; without huge pages as before
  return true;
}

bool AddressArena::protect(std::uintptr_t address, std::uint64_t size, Access access) {
  return mprotect(reinterpret_cast<void*>(address), size, protection(access)) == 0;
}

void AddressArena::unmap(std::uintptr_t address, std::uint64_t size) {
  if (mmap(reinterpret_cast<void*>(address), size, PROT_NONE, kReserve | MAP_FIXED, -1, 0) == MAP_FAILED) {
    std::fprintf(stderr, "cudasim: can't take back %llu bytes at %#llx: %s\n", static_cast<unsigned long long>(size),
                 static_cast<unsigned long long>(address), std::strerror(errno));
    std::abort();
  }
}

}  // namespace cudasim
