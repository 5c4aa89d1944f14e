#include "memory/physical_memory.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "memory/device_bytes.h"

namespace cudasim {
namespace {

// Newer than some C libraries' headers.
constexpr int kCollapse = 25;  // MADV_COLLAPSE

// The file's first `size` bytes on a granule's boundary, which a huge page needs. Null where there is no room.
std::byte* map_window(int file, std::uint64_t size) {
  void* got = mmap(nullptr, size + kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(got);
  const std::uint64_t ahead = (kGranule - reinterpret_cast<std::uintptr_t>(got) % kGranule) % kGranule;
  std::byte* const aligned = begin + ahead;
  if (ahead != 0) munmap(begin, ahead);
  munmap(aligned + size, kGranule - ahead);
  if (mmap(aligned, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) != MAP_FAILED)
    return aligned;
  const int error = errno;
  munmap(aligned, size);
  errno = error;
  return nullptr;
}

// The program's thread may have been cancelled: it does not end in the middle of the driver.
class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

PhysicalMemory::PhysicalMemory(std::uint64_t capacity, bool poison)
    : capacity_(capacity),
      poison_(poison),
      free_(0, capacity),
      resident_(capacity / kGranule, false),
      whole_(capacity / kGranule, false),
      mapped_(capacity / kGranule, false) {
  file_ = memfd_create("cudasim-device", MFD_CLOEXEC);
  if (file_ < 0)
    throw std::system_error(errno, std::generic_category(), "memfd_create for the simulated device's memory");
  if (ftruncate(file_, static_cast<off_t>(capacity)) != 0) {
    const int error = errno;
    close(file_);
    throw std::system_error(error, std::generic_category(), "sizing the simulated device's memory");
  }
  if (capacity_ == 0) return;
  // Lowest offsets are given out first, so that this is where nearly all filling is done.
  window_size_ = std::min(capacity, poison_ ? kPoisonedHeld : kHugeHeld) / kGranule * kGranule;
  window_ = map_window(file_, window_size_);
  if (window_ == nullptr) {
    const int error = errno;
    close(file_);
    throw std::system_error(error, std::generic_category(), "mapping the simulated device's memory");
  }
}

PhysicalMemory::~PhysicalMemory() {
  if (window_ != nullptr) munmap(window_, window_size_);
  close(file_);
}

std::vector<Extent> PhysicalMemory::take(std::uint64_t size) {
  std::vector<Extent> extents;
  if (size == 0 || size > free_.free_bytes()) return extents;
  const bool fill = poison_ && held() + size <= kPoisonedHeld;
  for (std::uint64_t left = size; left != 0;) {
    const auto range = free_.take_up_to(left);  // there is enough: checked above
    extents.push_back({range->begin, range->size});
    left -= range->size;
  }
  bool prepared = true;
  for (const Extent& extent : extents) prepared &= prepare(extent, fill);
  if (prepared) return extents;
  give(extents);  // the host has no memory for them
  return {};
}

bool PhysicalMemory::prepare(const Extent& extent, bool fill) {
  bool prepared = true;
  if (fill || held() <= kHugeHeld) make_huge(extent);
  for (std::uint64_t at = extent.offset; at != extent.offset + extent.size; at += kGranule) {
    auto resident = resident_[at / kGranule];
    if (resident) resident_idle_ -= kGranule;
    if (fill) {
      prepared &= poison_granule(at, resident || whole_[at / kGranule]);
    } else if (resident && poison_) {
      drop({at, kGranule});  // beyond what is filled: no old contents either
    }
    if (fill || (resident && !poison_)) whole_[at / kGranule] = true;
    mapped_[at / kGranule] = false;
    resident = true;
  }
  return prepared;
}

void PhysicalMemory::make_huge(const Extent& extent) {
  const std::uint64_t end = std::min(extent.offset + extent.size, window_size_);
  for (std::uint64_t at = extent.offset; at < end;) {
    const std::uint64_t begin = at;
    while (at < end && !resident_[at / kGranule]) at += kGranule;
    if (at != begin) make_run_huge(begin, at);
    while (at < end && resident_[at / kGranule]) at += kGranule;
  }
}

// In as few calls as there are runs: each waits for all processors to hand over the pages that they hold back.
void PhysicalMemory::make_run_huge(std::uint64_t begin, std::uint64_t end) {
  if (!can_be_huge_) return;
  const NotCancelled not_cancelled;
  const char zero = 0;  // what has no page at all is left as it is
  for (std::uint64_t at = begin; at < end; at += kGranule) {
    if (pwrite(file_, &zero, 1, static_cast<off_t>(at)) != 1) return;
  }
  if (madvise(window_ + begin, end - begin, kCollapse) == 0) {
    std::fill(whole_.begin() + static_cast<std::ptrdiff_t>(begin / kGranule),
              whole_.begin() + static_cast<std::ptrdiff_t>(end / kGranule), true);
  } else if (errno == EINVAL) {
    can_be_huge_ = false;  // an older kernel, or one without them
  }
}

InRam PhysicalMemory::in_ram(const Extent& extent) const {
  auto found = InRam::kYes;
  for (std::uint64_t at = extent.offset; at < extent.offset + extent.size; at += kGranule) {
    if (whole_[at / kGranule]) continue;
    if (!mapped_[at / kGranule]) return InRam::kNo;
    found = InRam::kPerhaps;
  }
  return found;
}

void PhysicalMemory::mapped(const Extent& extent) {
  for (std::uint64_t at = extent.offset; at < extent.offset + extent.size; at += kGranule)
    mapped_[at / kGranule] = true;
}

// Pages that are there are filled fastest where they are mapped, and new ones by a write, which neither faults for each
// nor clears it first.
bool PhysicalMemory::poison_granule(std::uint64_t offset, bool resident) {
  if (offset >= window_size_) return write_poison(offset);
  if (resident) {
    fill_device_bytes(window_ + offset, kPoison, kGranule);
    return true;
  }
  if (!write_poison(offset)) return false;
#ifdef MADV_POPULATE_WRITE
  madvise(window_ + offset, kGranule, MADV_POPULATE_WRITE);  // an older kernel faults them when they are filled next
#endif
  return true;
}

bool PhysicalMemory::write_poison(std::uint64_t offset) {
  static const std::vector<std::byte> block(256 << 10, kPoison);
  const NotCancelled not_cancelled;
  std::uint64_t at = offset;
  while (at < offset + kGranule) {
    const ssize_t written = pwrite(file_, block.data(), block.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += static_cast<std::uint64_t>(written);
  }
  return at >= offset + kGranule;
}

void PhysicalMemory::give(const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) {
    free_.give(extent.offset, extent.size);
    const bool keep = resident_idle_ + extent.size <= kIdleKept;
    if (keep) {
      resident_idle_ += extent.size;
      continue;
    }
    drop(extent);
    for (std::uint64_t at = extent.offset; at != extent.offset + extent.size; at += kGranule) {
      resident_[at / kGranule] = false;
    }
  }
}

void PhysicalMemory::drop(const Extent& extent) {
  for (std::uint64_t at = extent.offset; at != extent.offset + extent.size; at += kGranule)
    whole_[at / kGranule] = false;
  // A failure costs RAM, not correctness: the pages are found again when the granules are taken.
  while (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset),
                   static_cast<off_t>(extent.size)) != 0 &&
         errno == EINTR) {
  }
}

}  // namespace cudasim
