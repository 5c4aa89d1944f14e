// An event: the place in a stream that was recorded last.
#pragma once
#include <cuda.h>

#include "device/operation.h"
#include "units.h"

namespace cudasim {

struct Event {
  ContextId context = ContextId::kNone;
  CUevent handle = nullptr;
  unsigned flags = CU_EVENT_DEFAULT;
  OperationPtr recorded;  // null: never recorded, counts as complete

  bool timed() const { return (flags & CU_EVENT_DISABLE_TIMING) == 0; }
};

}  // namespace cudasim
