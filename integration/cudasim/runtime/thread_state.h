#pragma once

// What the runtime remembers for each thread. Trivial to construct and to destroy: usable before and after every static
// object.

#include <driver_types.h>
#include <vector_types.h>

namespace cudart {

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  void* stream;
};

struct ThreadState {
  cudaError_t last_error;
  int device;                 // as chosen by cudaSetDevice
  unsigned bound_generation;  // of contexts, see context.h; 0: this thread has not been looked at
};

extern constinit thread_local ThreadState t_state;

// `kernel<<<...>>>(f())` pushes its configuration, evaluates f() (which may launch kernels itself), and pops it in the
// stub. The push fails where memory is short.
bool push_configuration(const CallConfiguration& configuration);
bool pop_configuration(CallConfiguration& configuration);

}  // namespace cudart
