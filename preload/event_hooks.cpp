// Hooks of events: where they were recorded, and when the host saw them done.
#include "agent/operations/operations.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/recorder.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

std::uint64_t number_of(CUevent event) noexcept { return reinterpret_cast<std::uint64_t>(event); }

template <Hook hook, typename... Flags>
CUresult record(CUevent event, CUstream stream, bool per_thread, unsigned int kind, Flags... flags) noexcept {
  if (!agent::operations_are_watched()) return real<hook>()(event, stream, flags...);
  const agent::StreamName name{stream, per_thread};
  // In a capture nothing is recorded: the event is a place in the graph, or the graph will record it.
  if (agent::is_captured(name)) {
    agent::note_event_in_graph(event, (kind & CU_EVENT_RECORD_EXTERNAL) != 0);
    return agent::noted(real<hook>()(event, stream, flags...));
  }
  // Its place is known before the call: what another thread queues meanwhile may come behind it.
  const agent::EventRecord record = agent::begin_event_record(event, name);
  const CUresult result = agent::noted(real<hook>()(event, stream, flags...));
  agent::event_record_done(record, result == CUDA_SUCCESS);
  if (result != CUDA_SUCCESS) return result;
  agent::record_simple(shm::RecordKind::kEventRecord, shm::EventBody{number_of(event), agent::stream_number(name)});
  return result;
}

template <Hook hook>
CUresult destroy(CUevent event) noexcept {
  agent::note_event_destroyed(event);
  return real<hook>()(event);
}

// A free that natively waits for all that was recorded before it, and here has not, has been seen to return.
CUresult wait_as_natively(CUevent event) noexcept {
  return agent::is_behind_free(event) ? real<Hook::cuEventSynchronize>()(event) : CUDA_ERROR_NOT_READY;
}

template <Hook hook>
CUresult ask(CUevent event, bool waits) noexcept {
  if (!agent::operations_are_watched()) return real<hook>()(event);
  const agent::HostWait wait = agent::begin_host_wait_for_event(event);
  CUresult result = real<hook>()(event);
  if (result == CUDA_ERROR_NOT_READY) result = wait_as_natively(event);
  if (result != CUDA_SUCCESS) return agent::noted(result);
  agent::host_wait_done(wait);
  // Queries are not recorded: how often a program asks is chance.
  if (waits && agent::recording()) {
    agent::record_simple(shm::RecordKind::kSynchronize,
                         shm::SynchronizeBody{static_cast<std::uint64_t>(shm::Scope::kEvent), number_of(event)});
  }
  return result;
}

template <Hook hook>
CUresult elapsed(float* milliseconds, CUevent from, CUevent to) noexcept {
  const CUresult result = real<hook>()(milliseconds, from, to);
  if (result != CUDA_ERROR_NOT_READY || !agent::operations_are_watched()) return agent::noted(result);
  for (const CUevent event : {from, to}) {
    if (agent::is_behind_free(event)) real<Hook::cuEventSynchronize>()(event);
  }
  return agent::noted(real<hook>()(milliseconds, from, to));
}

// The graph records the event whenever it runs.
template <Hook hook, typename Node, typename... Before>
CUresult set_event(CUevent event, Node node, Before... before) noexcept {
  agent::note_event_in_graph(event, true);
  return real<hook>()(before..., node, event);
}

}  // namespace

CUresult cuEventRecord(CUevent event, CUstream stream) noexcept {
  return record<Hook::cuEventRecord>(event, stream, false, 0);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) noexcept {
  return record<Hook::cuEventRecordWithFlags>(event, stream, false, flags, flags);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) noexcept {
  return record<Hook::cuEventRecord_ptsz>(event, stream, true, 0);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) noexcept {
  return record<Hook::cuEventRecordWithFlags_ptsz>(event, stream, true, flags, flags);
}

CUresult cuEventDestroy(CUevent event) noexcept { return destroy<Hook::cuEventDestroy>(event); }
CUresult cuEventDestroy_v2(CUevent event) noexcept { return destroy<Hook::cuEventDestroy_v2>(event); }
CUresult cuEventSynchronize(CUevent event) noexcept {
  const agent::Uncancellable scope;
  return ask<Hook::cuEventSynchronize>(event, true);
}
CUresult cuEventQuery(CUevent event) noexcept { return ask<Hook::cuEventQuery>(event, false); }

CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) noexcept {
  return elapsed<Hook::cuEventElapsedTime>(milliseconds, from, to);
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent from, CUevent to) noexcept {
  return elapsed<Hook::cuEventElapsedTime_v2>(milliseconds, from, to);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                   CUevent event) noexcept {
  agent::note_event_in_graph(event, true);
  return real<Hook::cuGraphAddEventRecordNode>()(node, graph, dependencies, count, event);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) noexcept {
  return set_event<Hook::cuGraphEventRecordNodeSetEvent>(event, node);
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec graph, CUgraphNode node, CUevent event) noexcept {
  return set_event<Hook::cuGraphExecEventRecordNodeSetEvent>(event, node, graph);
}

}  // namespace memopt::preload::hooks
