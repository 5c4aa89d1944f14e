// A stream: a line of operations in order.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checker/checker.h"
#include "device/operation.h"
#include "units.h"

namespace cudasim {

struct Capture;    // graph/captures.h
struct GraphNode;  // graph/graph.h

inline constexpr int kLeastPriority = 0, kGreatestPriority = -5;

enum class StreamKind : std::uint8_t { kCreated, kLegacy, kPerThread };

class Stream {
 public:
  StreamKind kind = StreamKind::kCreated;
  ContextId context = ContextId::kNone;
  CUstream handle = nullptr;  // CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a number that is never used twice
  std::uint64_t id = 0;
  unsigned flags = CU_STREAM_DEFAULT;
  int priority = 0;
  std::map<CUstreamAttrID, CUstreamAttrValue> attributes;  // that were set; the priority is kept above
  bool destroyed = false;

  OperationPtr tail;               // last operation queued; null before the first
  std::deque<OperationPtr> queue;  // work that had not ended when last looked at, for the queue's depth

  // While it is captured: nothing is queued, and the next node comes behind these.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> capture_behind;

  ActorId actor{};
  std::uint64_t steps = 0;  // of the actor

  // Ordered against the legacy stream.
  bool blocking() const { return kind != StreamKind::kLegacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

}  // namespace cudasim
