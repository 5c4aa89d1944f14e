#include "missing.h"

#include <stdio.h>

#include "error.h"

namespace cudart {

cudaError_t report_missing(const char* name, std::atomic<bool>& said) {
  if (!said.exchange(true, std::memory_order_relaxed)) {
    fprintf(stderr, "cudasim: %s is not implemented by this runtime, it returns cudaErrorNotSupported\n", name);
  }
  return record(cudaErrorNotSupported);
}

}  // namespace cudart
