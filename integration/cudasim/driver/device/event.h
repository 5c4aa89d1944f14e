// An event: the place in a stream that was recorded last.
#pragma once
#include <cuda.h>

#include <memory>
#include <vector>

#include "device/operation.h"
#include "units.h"

namespace cudasim {

struct Capture;    // graph/captures.h
struct GraphNode;  // graph/graph.h

struct Event {
  ContextId context = ContextId::kNone;
  CUevent handle = nullptr;
  unsigned flags = CU_EVENT_DEFAULT;
  OperationPtr recorded;  // null: never recorded, counts as complete

  // Recorded last in a captured stream, behind these nodes.
  std::shared_ptr<Capture> captured{};
  std::vector<GraphNode*> captured_behind{};

  bool timed() const { return (flags & CU_EVENT_DISABLE_TIMING) == 0; }
};

}  // namespace cudasim
