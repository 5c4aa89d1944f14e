// From a launch call to queued work.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <vector>

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
  bool cooperative = false;
};

// Checks as the driver does, copies the parameters, queues.
CUresult launch(Driver& driver, ContextId context, const LaunchRequest& request);

// What launch() would refuse at once, with a copy of the parameters and their offsets in it; queues nothing. The stream
// is not looked at.
CUresult check_launch(Driver& driver, ContextId context, const LaunchRequest& request, std::vector<std::byte>& buffer,
                      std::vector<std::size_t>& offsets);

// "_Z3addPKfS0_Pfi" as "add": demangled without parameters and return type. Names that are not mangled stay.
std::string readable_name(const std::string& mangled);

}  // namespace cudasim
