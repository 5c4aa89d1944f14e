#include "graph/captures.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "device/event.h"
#include "device/stream.h"

namespace cudasim {
namespace {

// Whether all of `wanted` lie on paths that end at one of `ends`.
bool joined(const std::set<GraphNode*>& wanted, const std::vector<GraphNode*>& ends) {
  std::set<const GraphNode*> seen(ends.begin(), ends.end());
  std::vector<const GraphNode*> left(ends.begin(), ends.end());
  while (!left.empty()) {
    const GraphNode* const node = left.back();
    left.pop_back();
    for (const GraphEdge& edge : node->behind) {
      if (seen.insert(edge.from).second) left.push_back(edge.from);
    }
  }
  return std::all_of(wanted.begin(), wanted.end(), [&](GraphNode* node) { return seen.contains(node); });
}

void add_new(std::vector<GraphNode*>& nodes, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

}  // namespace

CUstreamCaptureMode& Captures::thread_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult Captures::use(Stream& stream) {
  if (active_.empty()) return CUDA_SUCCESS;
  if (stream.capture != nullptr) return stream.capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  if (stream.kind != StreamKind::kLegacy) return CUDA_SUCCESS;
  bool drawn_in = false;
  for (const auto& capture : active_) {
    const bool blocking = std::any_of(capture->streams.begin(), capture->streams.end(), [&](const Stream* other) {
      return other->context == stream.context && other->blocking();
    });
    if (!blocking) continue;
    spoil(*capture);
    drawn_in = true;
  }
  return drawn_in ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult Captures::wait_for(Stream& stream) {
  if (const CUresult bad = use(stream); bad != CUDA_SUCCESS) return bad;
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  spoil(*stream.capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult Captures::wait_for_context(ContextId context) {
  bool forbidden = false;
  for (const auto& capture : active_) {
    if (std::none_of(capture->streams.begin(), capture->streams.end(),
                     [&](const Stream* stream) { return stream->context == context; }))
      continue;
    spoil(*capture);
    forbidden = true;
  }
  return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult Captures::unsafe_call() {
  if (active_.empty() || thread_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  bool forbidden = false;
  for (const auto& capture : active_) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool own = capture->thread == std::this_thread::get_id();
    if (!own && (thread_mode() != CU_STREAM_CAPTURE_MODE_GLOBAL || capture->mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
      continue;
    spoil(*capture);
    forbidden = true;
  }
  return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

// Those that may wait for the device. NVIDIA's documentation gives examples (cuEventQuery, cuMemAlloc), no list.
bool Captures::is_unsafe(const char* symbol) {
  static constexpr std::string_view kNames[] = {
      "cuMemAlloc",       "cuMemAlloc_v2",      "cuMemAllocPitch", "cuMemAllocPitch_v2",        "cuMemAllocManaged",
      "cuMemAllocHost",   "cuMemAllocHost_v2",  "cuMemHostAlloc",  "cuMemHostRegister",         "cuMemHostRegister_v2",
      "cuMemFree",        "cuMemFree_v2",       "cuMemFreeHost",   "cuMemHostUnregister",       "cuEventQuery",
      "cuArrayCreate_v2", "cuArray3DCreate_v2", "cuArrayDestroy",  "cuDevicePrimaryCtxReset_v2"};
  return std::find(std::begin(kNames), std::end(kNames), symbol) != std::end(kNames);
}

void Captures::add(Stream& stream, NodeWork work) {
  Capture& capture = *stream.capture;
  GraphNode& node = capture.graph->add(std::move(work));
  for (GraphNode* before : stream.capture_behind) capture.graph->connect(*before, node, {});
  capture.nodes.insert(&node);
  stream.capture_behind = {&node};
}

void Captures::record(Event& event, Stream& stream) {
  event.recorded = nullptr;
  event.captured = stream.capture;
  event.captured_behind = stream.capture_behind;
}

CUresult Captures::wait_for(const Event& event) {
  if (event.captured == nullptr) return CUDA_SUCCESS;
  if (event.captured->active) event.captured->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult Captures::wait(Stream& stream, const Event& event) {
  const std::shared_ptr<Capture> of_event = event.captured;
  if (stream.capture == nullptr) {
    if (of_event == nullptr) return CUDA_SUCCESS;
    if (!of_event->active) return CUDA_ERROR_CAPTURED_EVENT;
    if (of_event->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream.kind == StreamKind::kLegacy) {
      spoil(*of_event);
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    stream.capture = of_event;
    stream.capture_behind = event.captured_behind;
    of_event->streams.push_back(&stream);
    return CUDA_SUCCESS;
  }
  if (of_event == stream.capture) {
    add_new(stream.capture_behind, event.captured_behind);
    return CUDA_SUCCESS;
  }
  spoil(*stream.capture);
  if (of_event == nullptr || !of_event->active) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  spoil(*of_event);
  return CUDA_ERROR_STREAM_CAPTURE_MERGE;
}

CUresult Captures::begin(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                         const std::vector<GraphNode*>& behind) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream.kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const auto capture = std::make_shared<Capture>();
  capture->id = ++last_id_;
  capture->own_graph = graph == nullptr;
  capture->graph = graph != nullptr ? std::move(graph) : std::make_shared<Graph>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->streams.push_back(&stream);
  stream.capture = capture;
  stream.capture_behind = behind;
  active_.push_back(capture);
  return CUDA_SUCCESS;
}

CUresult Captures::end(Stream& stream, std::shared_ptr<Graph>& out) {
  out = nullptr;
  if (stream.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture->origin != &stream) {
    spoil(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const bool whole = joined(capture->nodes, stream.capture_behind);
  std::shared_ptr<Graph> graph = capture->graph;
  finish(*capture);
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!whole) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  out = std::move(graph);
  return CUDA_SUCCESS;
}

void Captures::finish(Capture& capture) {
  capture.active = false;
  // An event that was recorded in it keeps it, and is not to keep the graph's memory.
  capture.graph = nullptr;
  for (Stream* stream : capture.streams) {
    stream->capture = nullptr;
    stream->capture_behind.clear();
  }
  capture.streams.clear();
  std::erase_if(active_, [&](const auto& one) { return one.get() == &capture; });
}

CUresult Captures::status(Stream& stream, CUstreamCaptureStatus& out) {
  if (stream.capture == nullptr) {
    out = CU_STREAM_CAPTURE_STATUS_NONE;
    return use(stream);
  }
  out = stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

void Captures::stream_gone(Stream& stream) {
  if (stream.capture == nullptr) return;
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture->origin == &stream) return finish(*capture);
  // What it has done may be joined already, or is by an event that was recorded on it; end() says where it is not.
  std::erase(capture->streams, &stream);
  stream.capture = nullptr;
}

void Captures::node_gone(GraphNode& node) {
  for (const auto& capture : active_) {
    capture->nodes.erase(&node);
    for (Stream* stream : capture->streams) std::erase(stream->capture_behind, &node);
  }
}

}  // namespace cudasim
