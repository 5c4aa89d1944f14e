// How call stacks are walked in this process: by libunwind if it can be loaded, else along frame pointers.
#pragma once

#include "shm/status.h"

namespace memopt::agent {

class StackWalker {
 public:
  // Loads libunwind from beside `library_folder` (may be empty) or from the system. It is loaded locally: loaded
  // globally its _Unwind_* functions would take over every exception of the process.
  explicit StackWalker(const char* library_folder) noexcept;

  const shm::StackWalkerStatus& status() const { return status_; }

 private:
  using BacktraceFunction = int (*)(void** buffer, int size);

  BacktraceFunction backtrace_ = nullptr;  // null: frame pointers
  shm::StackWalkerStatus status_;
};

// This process's; made at the first call, which loads a library, so not from a hook. Never destroyed.
const StackWalker& stack_walker() noexcept;

}  // namespace memopt::agent
