// Memory that two processes share: a memfd that was preallocated and can neither shrink nor grow any more, so that
// touching it can never raise SIGBUS (channel.h). Mapped by Boost.Interprocess. Nothing throws.
#pragma once

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace memopt::shm {

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void reset(int number = -1) {
    if (number_ >= 0) {
      const int kept = errno;
      ::close(number_);
      errno = kept;
    }
    number_ = number;
  }
  // Moves it to a number of at least `lowest`, out of the way of programs that count on low ones, if there is room.
  void move_up(int lowest) {
    if (number_ < 0 || number_ >= lowest) return;
    if (const int high = ::fcntl(number_, F_DUPFD_CLOEXEC, lowest); high >= 0) reset(high);
  }

 private:
  int number_ = -1;
};

inline constexpr int kSealsOfMemory = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
inline constexpr int kSealsOfPlan = kSealsOfMemory | F_SEAL_WRITE;

// A memfd of `bytes` zeros, all of them allocated, not yet sealed. False with the reason in errno.
inline Descriptor create_memory(const char* name, std::size_t bytes) {
  Descriptor memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Allocation sets the size too. Where it is not supported nothing but SIGBUS would tell of a shortage.
  int failure = 0;
  do {
    failure = !memory || ::fallocate(memory.get(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (failure == EINTR);
  if (failure == 0) return memory;
  memory.reset();
  errno = failure;
  return memory;
}

// A memfd with a copy of `bytes`, sealed against any change. False with the reason in errno.
inline Descriptor create_sealed_copy(const char* name, std::span<const std::byte> bytes) {
  Descriptor memory = create_memory(name, bytes.size());
  std::size_t written = 0;
  while (memory && written < bytes.size()) {
    const ssize_t part = ::write(memory.get(), bytes.data() + written, bytes.size() - written);
    if (part > 0) written += static_cast<std::size_t>(part);
    if (part < 0 && errno != EINTR) memory.reset();
  }
  if (memory && ::fcntl(memory.get(), F_ADD_SEALS, kSealsOfPlan) != 0) memory.reset();
  return memory;
}

// A mapping of shared memory; unmapped with its owner.
class SharedMapping {
 public:
  enum class Access { kReadOnly, kReadWrite };

  SharedMapping() = default;
  SharedMapping(SharedMapping&& other) noexcept { region_.swap(other.region_); }
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    boost::interprocess::mapped_region empty;
    empty.swap(other.region_);
    region_.swap(empty);
    return *this;
  }

  explicit operator bool() const { return region_.get_size() != 0; }
  void* data() const { return region_.get_address(); }
  std::size_t size() const { return region_.get_size(); }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data()), size()}; }

  // All of `bytes`. Empty if it cannot be mapped.
  static SharedMapping map(int descriptor, std::size_t bytes, Access access) noexcept {
    namespace ipc = boost::interprocess;
    struct Mappable {
      int descriptor;
      ipc::mapping_handle_t get_mapping_handle() const {
        return ipc::ipcdetail::mapping_handle_from_file_handle(descriptor);
      }
    };
    SharedMapping mapping;
    try {
      ipc::mapped_region region(Mappable{descriptor}, access == Access::kReadOnly ? ipc::read_only : ipc::read_write, 0,
                                bytes);
      mapping.region_.swap(region);
    } catch (...) {
      // ipc::interprocess_exception: too many mappings, no address space
    }
    return mapping;
  }

  // Memory that somebody sent: refused unless it has at least `seals` and is of exactly `bytes`. `*why` says what was
  // wrong. May throw std::bad_alloc.
  static SharedMapping accept(int descriptor, std::size_t bytes, int seals, Access access, std::string* why) {
    const int found = ::fcntl(descriptor, F_GET_SEALS);
    struct stat info {};
    if (found < 0 || (found & seals) != seals) {
      *why = "seals " + std::to_string(found) + ": expected at least " + std::to_string(seals);
    } else if (::fstat(descriptor, &info) != 0 || static_cast<std::uint64_t>(info.st_size) != bytes || bytes == 0) {
      *why = "memory of " + std::to_string(info.st_size) + " bytes: expected " + std::to_string(bytes);
    } else if (static_cast<std::uint64_t>(info.st_blocks) * 512 < bytes) {
      // A hole is filled at the first touch, and if there is no memory for it then, with SIGBUS.
      *why = "memory with holes: expected all of its " + std::to_string(bytes) + " bytes allocated";
    } else {
      SharedMapping mapping = map(descriptor, bytes, access);
      if (!mapping) *why = "memory of " + std::to_string(bytes) + " bytes could not be mapped";
      return mapping;
    }
    return {};
  }

 private:
  boost::interprocess::mapped_region region_;
};

}  // namespace memopt::shm
