#include "common/answer.h"

#include <stdio.h>

namespace cudasim::libraries {

int refuse(const char* function, int status, char& said) {
  if (!__atomic_exchange_n(&said, char{1}, __ATOMIC_RELAXED)) {
    fprintf(stderr, "cudasim: %s is not there on the simulated device, it returns error %d\n", function, status);
  }
  return status;
}

}  // namespace cudasim::libraries
