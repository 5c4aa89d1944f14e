#include "memory/physical_memory.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace cudasim {

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
  if (!poison_ || capacity_ == 0) return;
  // Lowest offsets are given out first, so that this is where nearly all filling is done.
  window_size_ = std::min(capacity, kPoisonedHeld);
  void* window = mmap(nullptr, window_size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (window == MAP_FAILED) {
    const int error = errno;
    close(file_);
    throw std::system_error(error, std::generic_category(), "mapping the simulated device's memory");
  }
  window_ = static_cast<std::byte*>(window);
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
  for (std::uint64_t at = extent.offset; at != extent.offset + extent.size; at += kGranule) {
    auto resident = resident_[at / kGranule];
    if (resident) resident_idle_ -= kGranule;
    if (fill) {
      prepared &= poison_granule(at, resident);
    } else if (resident && poison_) {
      drop({at, kGranule});  // beyond what is filled: no old contents either
    }
    whole_[at / kGranule] = fill || (resident && !poison_);
    mapped_[at / kGranule] = false;
    resident = true;
  }
  return prepared;
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
bool PhysicalMemory::poison_granule(std::uint64_t offset, [[maybe_unused]] bool resident) {
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer would note each byte of the window in four of its own.
  return write_poison(offset);
#else
  if (offset >= window_size_) return write_poison(offset);
  if (resident) {
    std::memset(window_ + offset, std::to_integer<int>(kPoison), kGranule);
    return true;
  }
  if (!write_poison(offset)) return false;
#ifdef MADV_POPULATE_WRITE
  madvise(window_ + offset, kGranule, MADV_POPULATE_WRITE);  // an older kernel faults them when they are filled next
#endif
  return true;
#endif
}

bool PhysicalMemory::write_poison(std::uint64_t offset) {
  static const std::vector<std::byte> block(256 << 10, kPoison);
  // The program's thread may have been cancelled: it does not end in the middle of the driver.
  int cancellable = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
  std::uint64_t at = offset;
  while (at < offset + kGranule) {
    const ssize_t written = pwrite(file_, block.data(), block.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += static_cast<std::uint64_t>(written);
  }
  pthread_setcancelstate(cancellable, nullptr);
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
  // A failure costs RAM, not correctness: the pages are found again when the granules are taken.
  while (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset),
                   static_cast<off_t>(extent.size)) != 0 &&
         errno == EINTR) {
  }
}

}  // namespace cudasim
