#include "agent/link/own_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "shm/sealed_memory.h"

namespace memopt::agent {

void OwnDescriptor::set(int number) noexcept {
  struct stat info {};
  number_ = number;
  if (number < 0 || fstat(number, &info) != 0) return;
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

bool OwnDescriptor::intact() const noexcept {
  struct stat info {};
  const int kept = errno;
  const bool ours = number_ >= 0 && fstat(number_, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
  errno = kept;
  return ours;
}

void OwnDescriptor::close() noexcept {
  if (intact()) ::close(number_);
  number_ = -1;
}

bool OwnMemory::create(const char* name, std::size_t bytes, bool own_descriptors) noexcept {
  shm::Descriptor memory = shm::create_memory(name, bytes);
  if (!memory) return false;
  if (!own_descriptors) memory.move_up(kLowestOwnDescriptor);
  if (fcntl(memory.get(), F_ADD_SEALS, shm::kSealsOfMemory) != 0) return false;
  shm::SharedMapping mapping = shm::SharedMapping::map(memory.get(), bytes, shm::SharedMapping::Access::kReadWrite);
  // Never unmapped: threads of the program write there until the process ends.
  auto* const kept = mapping ? new (std::nothrow) shm::SharedMapping(std::move(mapping)) : nullptr;
  if (kept == nullptr) {
    errno = ENOMEM;
    return false;
  }
  madvise(kept->data(), kept->size(), MADV_DONTFORK);
  data_ = kept->data();
  descriptor_.set(memory.release());
  return true;
}

void OwnMemory::forget_after_fork(bool shared_descriptors) noexcept {
  data_ = nullptr;
  if (shared_descriptors) {
    descriptor_.close();
  } else {
    descriptor_.forget();
  }
}

}  // namespace memopt::agent
