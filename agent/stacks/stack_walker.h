// How call stacks are walked in this process: by libunwind if it can be loaded, else along frame pointers.
#pragma once

#include <cstdint>

#include "shm/status.h"

namespace memopt::agent {

class StackWalker {
 public:
  // Loads libunwind from beside `library_folder` (may be empty) or from the system. It is loaded locally: loaded
  // globally its _Unwind_* functions would take over every exception of the process.
  explicit StackWalker(const char* library_folder) noexcept;
  // Without libunwind.
  StackWalker() noexcept;

  const shm::StackWalkerStatus& status() const { return status_; }

  // The return addresses of the calling thread's frames, innermost first: that of this call, of its caller's call, and
  // so on. Returns how many, at most `size`; 0 if nothing could be walked. A bad frame ends the walk.
  int walk(void** frames, int size) const noexcept;

  // Objects were unloaded: what was remembered of their code must not be used again.
  void forget_code() const noexcept;

 private:
  using BacktraceFunction = int (*)(void** buffer, int size);
  using FlushFunction = void (*)(void* space, std::uintptr_t low, std::uintptr_t high);

  void set_up_caches(void* handle) noexcept;

  BacktraceFunction backtrace_ = nullptr;  // null: frame pointers
  FlushFunction flush_ = nullptr;
  void* space_ = nullptr;  // libunwind's description of this process
  shm::StackWalkerStatus status_;
};

// This process's; made at the first call, which loads a library, so not from a hook. Never destroyed. One thread makes
// it: libunwind can't be set up by one while another walks. Those that come meanwhile are given one without libunwind.
const StackWalker& stack_walker() noexcept;
// In a forked child: the thread that was making it is not there.
void forget_stack_walker_after_fork() noexcept;

}  // namespace memopt::agent
