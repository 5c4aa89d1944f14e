// Entry points that this driver does not have. Apart from call.h, since stubs.cpp must not see cuda.h.
#pragma once

namespace cudasim {

struct StubSite {
  const char* symbol;
  bool named = false;  // on stderr; under the driver's lock
};

int refuse(StubSite& site);  // CUDA_ERROR_NOT_SUPPORTED, or what comes before it

}  // namespace cudasim
