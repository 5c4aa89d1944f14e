// From a launch call to queued work.
#pragma once
#include <cuda.h>

#include "device/engine.h"
#include "module/modules_impl.h"

namespace cudasim {

struct LaunchRequest {
  CUfunction function;  // or a CUkernel
  unsigned grid[3];
  unsigned block[3];
  unsigned dynamic_shared_bytes;
  CUstream stream;
  StreamMode mode;
  void** parameters;  // one pointer each; or
  void** extra;       // a packed buffer
};

// Checks as the driver does, copies the parameters, queues.
CUresult launch(Driver& driver, ContextId context, const LaunchRequest& request);

// "_Z3addPKfS0_Pfi" as "add": demangled without parameters and return type. Names that are not mangled stay.
std::string readable_name(const std::string& mangled);

}  // namespace cudasim
