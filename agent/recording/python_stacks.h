// Which Python code of the calling thread's allocates: by name, beside the addresses of call_stacks.h, which are the
// same for all Python code that calls the same function.
#pragma once

namespace memopt::agent {

// Only while recording for a file (recording_fully): writes where the thread's Python is (kPythonStack), if it is
// elsewhere than at the last call. Code that was not seen in this recording is named before (kPythonFrame), at some
// microseconds a frame; else a stack costs a few nanoseconds a frame. errno is kept.
void record_python_stack() noexcept;

void forget_python_stacks_after_fork() noexcept;

}  // namespace memopt::agent
