// Memory of ours that the planner maps too, and its descriptor. Stays mapped for the life of the process; in a forked
// child it is not there.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace memopt::agent {

// A descriptor with the identity of its file: where the link thread shares the program's table of descriptors, the
// program may have closed the number and own it now.
class OwnDescriptor {
 public:
  constexpr OwnDescriptor() = default;
  void set(int number) noexcept;
  int get() const noexcept { return number_; }
  bool intact() const noexcept;
  // Closes it if it is still ours.
  void close() noexcept;
  // Not closed: it is not in this table.
  void forget() noexcept { number_ = -1; }

 private:
  int number_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

class OwnMemory {
 public:
  constexpr OwnMemory() = default;
  // `bytes` of zeros, sealed as channel.h says, not inherited by children. False with the reason in errno.
  bool create(const char* name, std::size_t bytes, bool own_descriptors) noexcept;

  void* data() const noexcept { return data_; }
  int get() const noexcept { return descriptor_.get(); }
  bool intact() const noexcept { return descriptor_.intact(); }
  void forget_after_fork(bool shared_descriptors) noexcept;

 private:
  void* data_ = nullptr;
  OwnDescriptor descriptor_;
};

// Out of the way of programs that count on low numbers.
inline constexpr int kLowestOwnDescriptor = 500;

}  // namespace memopt::agent
