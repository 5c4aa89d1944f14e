// Hooks of streams: which exist, what the host waits for, which waits for which event, which captures.
#include "agent/memory/arena_graphs.h"
#include "agent/operations/operations.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/recorder.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

std::uint64_t number_of(CUevent event) noexcept { return reinterpret_cast<std::uint64_t>(event); }

void note_created(CUresult result, const CUstream* stream) noexcept {
  if (result != CUDA_SUCCESS || stream == nullptr) return;
  agent::note_stream_created(*stream);
  agent::record_simple(shm::RecordKind::kStreamCreate, shm::StreamBody{agent::stream_number({*stream, false})});
}

template <Hook hook>
CUresult destroy(CUstream stream) noexcept {
  agent::record_simple(shm::RecordKind::kStreamDestroy, shm::StreamBody{agent::stream_number({stream, false})});
  agent::note_stream_destroyed(stream);
  return real<hook>()(stream);
}

// What the host knows to be done after it has waited, or asked and been told so.
template <typename Ask>
CUresult wait_for(agent::StreamName stream, Ask&& ask) noexcept {
  if (!agent::operations_are_watched()) return ask();
  const agent::HostWait wait = agent::begin_host_wait_for_stream(stream);
  const CUresult result = agent::noted(ask());
  if (result == CUDA_SUCCESS) agent::host_wait_done(wait);
  return result;
}

template <Hook hook>
CUresult synchronize(CUstream stream, bool per_thread) noexcept {
  const agent::Uncancellable scope;
  const agent::StreamName name{stream, per_thread};
  const CUresult result = wait_for(name, [&] { return real<hook>()(stream); });
  if (result == CUDA_SUCCESS && agent::recording()) {
    agent::record_simple(
        shm::RecordKind::kSynchronize,
        shm::SynchronizeBody{static_cast<std::uint64_t>(shm::Scope::kStream), agent::stream_number(name)});
  }
  return result;
}

// Queries are not recorded: how often a program asks is chance. Where nothing was queued since a free that natively
// waits for the stream, and here has not, the answer is that all is done.
template <Hook hook, Hook wait>
CUresult query(CUstream stream, bool per_thread) noexcept {
  const agent::StreamName name{stream, per_thread};
  return wait_for(name, [&] {
    const CUresult result = real<hook>()(stream);
    return result == CUDA_ERROR_NOT_READY && agent::is_behind_free(name) ? real<wait>()(stream) : result;
  });
}

template <Hook hook>
CUresult wait_event(CUstream stream, CUevent event, unsigned int flags, bool per_thread) noexcept {
  const agent::StreamName name{stream, per_thread};
  if (!agent::operations_are_watched() || agent::is_captured(name)) return real<hook>()(stream, event, flags);
  const agent::EventWait wait = agent::begin_event_wait(name, event);
  const CUresult result = agent::noted(real<hook>()(stream, event, flags));
  if (result != CUDA_SUCCESS) return result;
  agent::event_wait_done(wait);
  agent::record_simple(shm::RecordKind::kEventWait, shm::EventBody{number_of(event), agent::stream_number(name)});
  return result;
}

// The stream goes on when a value is there, which may be the host's to write.
template <Hook hook, typename Value>
CUresult wait_value(CUstream stream, CUdeviceptr address, Value value, unsigned int flags, bool per_thread) noexcept {
  const agent::StreamName name{stream, per_thread};
  // It is read for as long as the stream waits.
  agent::note_escape(address);
  if (agent::operations_are_watched() && !agent::is_captured(name)) agent::note_stream_may_be_held_up(name);
  return agent::noted(real<hook>()(stream, address, value, flags));
}

CUstream handle_of(CUstream stream, bool per_thread) noexcept {
  return stream == nullptr && per_thread ? CU_STREAM_PER_THREAD : stream;
}

template <Hook hook, typename... Arguments>
CUresult begin_capture(CUstream stream, bool per_thread, Arguments... arguments) noexcept {
  agent::before_capture(handle_of(stream, per_thread));
  const CUresult result = real<hook>()(stream, arguments...);
  if (result != CUDA_SUCCESS) agent::capture_ended(handle_of(stream, per_thread));
  return result;
}

// Refused calls leave the capture open; one that says that the capture was spoilt has ended it.
template <Hook hook>
CUresult end_capture(CUstream stream, CUgraph* graph, bool per_thread) noexcept {
  const CUresult result = real<hook>()(stream, graph);
  if (result == CUDA_SUCCESS && graph != nullptr) agent::note_captured(handle_of(stream, per_thread), *graph);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
      result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
    agent::capture_ended(handle_of(stream, per_thread));
  }
  return result;
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) noexcept {
  const CUresult result = with_relief([&] { return real<Hook::cuStreamCreate>()(stream, flags); });
  note_created(result, stream);
  return result;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) noexcept {
  const CUresult result =
      with_relief([&] { return real<Hook::cuStreamCreateWithPriority>()(stream, flags, priority); });
  note_created(result, stream);
  return result;
}

CUresult cuStreamDestroy(CUstream stream) noexcept { return destroy<Hook::cuStreamDestroy>(stream); }
CUresult cuStreamDestroy_v2(CUstream stream) noexcept { return destroy<Hook::cuStreamDestroy_v2>(stream); }

CUresult cuStreamSynchronize(CUstream stream) noexcept { return synchronize<Hook::cuStreamSynchronize>(stream, false); }

CUresult cuStreamQuery(CUstream stream) noexcept {
  return query<Hook::cuStreamQuery, Hook::cuStreamSynchronize>(stream, false);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) noexcept {
  return wait_event<Hook::cuStreamWaitEvent>(stream, event, flags, false);
}

CUresult cuStreamBeginCapture(CUstream stream) noexcept {
  return begin_capture<Hook::cuStreamBeginCapture>(stream, false);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) noexcept {
  return begin_capture<Hook::cuStreamBeginCapture_v2>(stream, false, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) noexcept {
  return begin_capture<Hook::cuStreamBeginCaptureToGraph>(stream, false, graph, dependencies, edges, count, mode);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) noexcept {
  return end_capture<Hook::cuStreamEndCapture>(stream, graph, false);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) noexcept {
  return synchronize<Hook::cuStreamSynchronize_ptsz>(stream, true);
}

CUresult cuStreamQuery_ptsz(CUstream stream) noexcept {
  return query<Hook::cuStreamQuery_ptsz, Hook::cuStreamSynchronize_ptsz>(stream, true);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) noexcept {
  return wait_event<Hook::cuStreamWaitEvent_ptsz>(stream, event, flags, true);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) noexcept {
  return begin_capture<Hook::cuStreamBeginCapture_ptsz>(stream, true);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) noexcept {
  return begin_capture<Hook::cuStreamBeginCapture_v2_ptsz>(stream, true, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) noexcept {
  return begin_capture<Hook::cuStreamBeginCaptureToGraph_ptsz>(stream, true, graph, dependencies, edges, count, mode);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) noexcept {
  return end_capture<Hook::cuStreamEndCapture_ptsz>(stream, graph, true);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue32>(stream, address, value, flags, false);
}

CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue32_ptsz>(stream, address, value, flags, true);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue32_v2>(stream, address, value, flags, false);
}

CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                     unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue32_v2_ptsz>(stream, address, value, flags, true);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue64>(stream, address, value, flags, false);
}

CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue64_ptsz>(stream, address, value, flags, true);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue64_v2>(stream, address, value, flags, false);
}

CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned int flags) noexcept {
  return wait_value<Hook::cuStreamWaitValue64_v2_ptsz>(stream, address, value, flags, true);
}

}  // namespace memopt::preload::hooks
