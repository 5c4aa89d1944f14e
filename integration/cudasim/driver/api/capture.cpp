// Stream capture: beginning, ending, asking.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <functional>
#include <utility>

#include "api/call.h"
#include "graph/graphs.h"

using namespace cudasim;

namespace {

constexpr StreamMode kLegacy = StreamMode::kLegacy, kPerThread = StreamMode::kPerThread;

CUresult on_stream(CallSite& site, CUstream handle, StreamMode mode,
                   const std::function<CUresult(Driver&, Stream&)>& body) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    Stream* const stream = driver.engine.find_stream(context, handle, mode);
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(driver, *stream);
  });
}

CUresult begin(CallSite& site, CUstream stream, CUstreamCaptureMode capture_mode, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    return driver.graphs->captures.begin(found, capture_mode, nullptr, {});
  });
}

CUresult begin_to_graph(CallSite& site, CUstream stream, CUgraph handle, const CUgraphNode* behind,
                        const CUgraphEdgeData*, size_t count, CUstreamCaptureMode capture_mode, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    std::shared_ptr<Graph> graph = driver.graphs->find(handle);
    if (graph == nullptr || (count != 0 && behind == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> nodes;
    for (std::size_t i = 0; i < count; ++i) {
      GraphNode* const node = driver.graphs->find(behind[i]);
      if (node == nullptr || node->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
      nodes.push_back(node);
    }
    return driver.graphs->captures.begin(found, capture_mode, std::move(graph), nodes);
  });
}

CUresult end(CallSite& site, CUstream stream, CUgraph* out, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = nullptr;
    std::shared_ptr<Graph> graph;
    const std::shared_ptr<Capture> capture = found.capture;
    const CUgraph its = capture != nullptr ? capture->graph->handle : nullptr;
    const CUresult result = driver.graphs->captures.end(found, graph);
    if (capture != nullptr && !capture->active && graph == nullptr && capture->own_graph) driver.graphs->destroy(its);
    if (graph != nullptr) *out = driver.graphs->find(graph->handle) ? graph->handle : driver.graphs->add(graph);
    return result;
  });
}

CUresult is_capturing(CallSite& site, CUstream stream, CUstreamCaptureStatus* out, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.graphs->captures.status(found, *out);
  });
}

struct Asked {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** behind = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  size_t* count = nullptr;
};

// Of a stream that does not capture, the status is all that is written. What is pointed to stays until the next
// question.
CUresult info(CallSite& site, CUstream stream, const Asked& asked, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    if (asked.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = driver.graphs->captures.status(found, *asked.status);
    if (result != CUDA_SUCCESS || found.capture == nullptr) return result;
    Capture& capture = *found.capture;
    if (asked.id != nullptr) *asked.id = capture.id;
    if (capture.invalid) return CUDA_SUCCESS;
    // A program may add nodes of its own to it, so that it is known from now on.
    if (asked.graph != nullptr) *asked.graph = driver.graphs->known_while_captured(capture);
    capture.told.clear();
    for (const GraphNode* node : found.capture_behind) capture.told.push_back(node->handle);
    capture.told_edges.assign(capture.told.size(), CUgraphEdgeData{});
    if (asked.behind != nullptr) *asked.behind = capture.told.data();
    if (asked.edges != nullptr) *asked.edges = capture.told_edges.data();
    if (asked.count != nullptr) *asked.count = capture.told.size();
    return CUDA_SUCCESS;
  });
}

CUresult update(CallSite& site, CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    if (found.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (found.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count != 0 && nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> behind;
    if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) behind = found.capture_behind;
    for (std::size_t i = 0; i < count; ++i) {
      GraphNode* const node = driver.graphs->find(nodes[i]);
      if (node == nullptr || node->graph != found.capture->graph.get()) return CUDA_ERROR_INVALID_VALUE;
      if (std::find(behind.begin(), behind.end(), node) == behind.end()) behind.push_back(node);
    }
    found.capture_behind = std::move(behind);
    return CUDA_SUCCESS;
  });
}

}  // namespace

// CUDA 10.0 knew one mode.
CUDASIM_API cuStreamBeginCapture(CUstream stream) {
  static CallSite site{"cuStreamBeginCapture"};
  return begin(site, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, kLegacy);
}
CUDASIM_API cuStreamBeginCapture_ptsz(CUstream stream) {
  static CallSite site{"cuStreamBeginCapture_ptsz"};
  return begin(site, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, kPerThread);
}
CUDASIM_API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  static CallSite site{"cuStreamBeginCapture_v2"};
  return begin(site, stream, mode, kLegacy);
}
CUDASIM_API cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  static CallSite site{"cuStreamBeginCapture_v2_ptsz"};
  return begin(site, stream, mode, kPerThread);
}
CUDASIM_API cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* behind,
                                        const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  static CallSite site{"cuStreamBeginCaptureToGraph"};
  return begin_to_graph(site, stream, graph, behind, edges, count, mode, kLegacy);
}
CUDASIM_API cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* behind,
                                             const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  static CallSite site{"cuStreamBeginCaptureToGraph_ptsz"};
  return begin_to_graph(site, stream, graph, behind, edges, count, mode, kPerThread);
}
CUDASIM_API cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  static CallSite site{"cuStreamEndCapture"};
  return end(site, stream, graph, kLegacy);
}
CUDASIM_API cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  static CallSite site{"cuStreamEndCapture_ptsz"};
  return end(site, stream, graph, kPerThread);
}

CUDASIM_API cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  static CallSite site{"cuStreamIsCapturing"};
  return is_capturing(site, stream, status, kLegacy);
}
CUDASIM_API cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  static CallSite site{"cuStreamIsCapturing_ptsz"};
  return is_capturing(site, stream, status, kPerThread);
}
CUDASIM_API cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  static CallSite site{"cuStreamGetCaptureInfo"};
  return info(site, stream, {.status = status, .id = id}, kLegacy);
}
CUDASIM_API cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  static CallSite site{"cuStreamGetCaptureInfo_ptsz"};
  return info(site, stream, {.status = status, .id = id}, kPerThread);
}
CUDASIM_API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                      const CUgraphNode** behind, size_t* count) {
  static CallSite site{"cuStreamGetCaptureInfo_v2"};
  return info(site, stream, {status, id, graph, behind, nullptr, count}, kLegacy);
}
CUDASIM_API cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** behind, size_t* count) {
  static CallSite site{"cuStreamGetCaptureInfo_v2_ptsz"};
  return info(site, stream, {status, id, graph, behind, nullptr, count}, kPerThread);
}
CUDASIM_API cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                      const CUgraphNode** behind, const CUgraphEdgeData** edges, size_t* count) {
  static CallSite site{"cuStreamGetCaptureInfo_v3"};
  return info(site, stream, {status, id, graph, behind, edges, count}, kLegacy);
}
CUDASIM_API cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** behind, const CUgraphEdgeData** edges,
                                           size_t* count) {
  static CallSite site{"cuStreamGetCaptureInfo_v3_ptsz"};
  return info(site, stream, {status, id, graph, behind, edges, count}, kPerThread);
}
CUDASIM_API cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags) {
  static CallSite site{"cuStreamUpdateCaptureDependencies"};
  return update(site, stream, nodes, count, flags, kLegacy);
}
CUDASIM_API cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags) {
  static CallSite site{"cuStreamUpdateCaptureDependencies_ptsz"};
  return update(site, stream, nodes, count, flags, kPerThread);
}
CUDASIM_API cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData*,
                                                 size_t count, unsigned flags) {
  static CallSite site{"cuStreamUpdateCaptureDependencies_v2"};
  return update(site, stream, nodes, count, flags, kLegacy);
}
CUDASIM_API cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData*,
                                                      size_t count, unsigned flags) {
  static CallSite site{"cuStreamUpdateCaptureDependencies_v2_ptsz"};
  return update(site, stream, nodes, count, flags, kPerThread);
}
CUDASIM_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static CallSite site{"cuThreadExchangeStreamCaptureMode"};
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
      return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, Captures::thread_mode());
    return CUDA_SUCCESS;
  });
}
