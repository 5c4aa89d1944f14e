#include "agent/stacks/readable_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "agent/stacks/imports.h"

namespace memopt::agent {
namespace {

// Both ends of the pipe that is none; no number of a descriptor, and not -1.
constexpr int kNoPipe = -501;

int no_pipe(int* ends, int) noexcept {
  ends[0] = ends[1] = kNoPipe;
  return 0;
}

// Empty, as a pipe is in which every byte has been read.
ssize_t read_but_no_pipe(int descriptor, void* to, std::size_t bytes) noexcept {
  if (descriptor != kNoPipe) return ::read(descriptor, to, bytes);
  errno = EAGAIN;
  return -1;
}

ssize_t write_but_no_pipe(int descriptor, const void* from, std::size_t bytes) noexcept {
  if (descriptor != kNoPipe) return ::write(descriptor, from, bytes);
  if (is_readable(from)) return static_cast<ssize_t>(bytes);
  errno = EFAULT;
  return -1;
}

// libunwind 1.6 writes by the system call itself.
long system_call_but_no_pipe(long number, long a, long b, long c, long d, long e, long f) noexcept {
  if (number != SYS_write || static_cast<int>(a) != kNoPipe) return syscall(number, a, b, c, d, e, f);
  return write_but_no_pipe(kNoPipe, reinterpret_cast<const void*>(b), static_cast<std::size_t>(c));
}

int close_but_no_pipe(int descriptor) noexcept { return descriptor != kNoPipe ? ::close(descriptor) : 0; }

// A kernel that looks at the other arguments first would say of every address that it can be read.
bool kernel_tells() noexcept {
  const std::uint64_t there = 0;
  void* const forbidden = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (forbidden == MAP_FAILED) return false;
  const bool tells = is_readable(&there) && !is_readable(forbidden);
  munmap(forbidden, 4096);
  return tells;
}

}  // namespace

// rt_sigprocmask with a meaningless first argument: the kernel reads the set before it looks at that, and changes
// nothing.
bool is_readable(const void* address) noexcept {
  const auto word = reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{7};
  constexpr int kMeaningless = ~0;
  const int kept = errno;
  const bool readable =
      syscall(SYS_rt_sigprocmask, kMeaningless, word, nullptr, sizeof(std::uint64_t)) != 0 && errno != EFAULT;
  errno = kept;
  return readable;
}

bool give_pipeless_validation(void* libunwind) noexcept {
  if (!kernel_tells()) return false;
  const bool by_write = replace_import(libunwind, "write", reinterpret_cast<void*>(&write_but_no_pipe));
  const bool by_call = replace_import(libunwind, "syscall", reinterpret_cast<void*>(&system_call_but_no_pipe));
  // The pipe last: what it gives is understood by the others only.
  return (by_write || by_call) && replace_import(libunwind, "read", reinterpret_cast<void*>(&read_but_no_pipe)) &&
         replace_import(libunwind, "close", reinterpret_cast<void*>(&close_but_no_pipe)) &&
         replace_import(libunwind, "pipe2", reinterpret_cast<void*>(&no_pipe));
}

}  // namespace memopt::agent
