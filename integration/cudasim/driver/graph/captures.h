// Streams that are being captured: what is queued on them becomes nodes.
//
// A capture begins on one stream (its origin) and takes in other streams when they wait for an event that was recorded
// in it. Each of them remembers the nodes that its next one depends on. What the rules forbid spoils the capture: it is
// known to be invalid until its origin ends it.
#pragma once
#include <cuda.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "graph/graph.h"

namespace cudasim {

class Stream;
struct Event;

struct Capture {
  unsigned long long id = 0;
  std::shared_ptr<Graph> graph;
  bool own_graph = true;  // not the program's (cuStreamBeginCaptureToGraph)
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  const Stream* origin = nullptr;
  std::vector<Stream*> streams;
  std::set<GraphNode*> nodes;  // made by its streams
  bool active = true;
  bool invalid = false;
  std::vector<CUgraphNode> told;  // what cuStreamGetCaptureInfo pointed to
  std::vector<CUgraphEdgeData> told_edges;
};

class Captures {
 public:
  // --- for all calls that look at a stream
  // Whether work may be queued on it now. A capturing stream that is spoilt: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. The
  // legacy stream beside a capture on a blocking one spoils that: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT.
  CUresult use(Stream& stream);
  // The same for calls that wait for or ask about it, which a capture forbids: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
  CUresult wait_for(Stream& stream);
  CUresult wait_for_context(ContextId context);
  // Calls that may synchronise: by the modes of the thread and of all captures.
  CUresult unsafe_call();
  static bool is_unsafe(const char* symbol);

  // Adds a node behind what the stream depends on.
  void add(Stream& stream, NodeWork work);

  // --- events
  void record(Event& event, Stream& stream);          // no node
  CUresult wait(Stream& stream, const Event& event);  // draws the stream in
  static CUresult wait_for(const Event& event);       // of the host

  // --- begin, end, questions
  CUresult begin(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                 const std::vector<GraphNode*>& behind);
  // `out` is null where it fails; the capture is over all the same, except in the wrong thread or stream.
  CUresult end(Stream& stream, std::shared_ptr<Graph>& out);
  CUresult status(Stream& stream, CUstreamCaptureStatus& out);
  void stream_gone(Stream& stream);
  void node_gone(GraphNode& node);
  // Of the calling thread.
  static CUstreamCaptureMode& thread_mode();

 private:
  void spoil(Capture& capture) { capture.invalid = true; }
  void finish(Capture& capture);

  std::vector<std::shared_ptr<Capture>> active_;
  unsigned long long last_id_ = 0;
};

}  // namespace cudasim
