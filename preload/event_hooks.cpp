// Hooks of events: where they were recorded, and when the host saw them done.
#include "agent/operations/operations.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/recorder.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

std::uint64_t number_of(CUevent event) noexcept { return reinterpret_cast<std::uint64_t>(event); }

template <Hook hook, typename... Flags>
CUresult record(CUevent event, CUstream stream, bool per_thread, Flags... flags) noexcept {
  const CUresult result = real<hook>()(event, stream, flags...);
  const agent::StreamName name{stream, per_thread};
  // In a capture nothing is recorded: the event is a place in the graph.
  if (result != CUDA_SUCCESS || !agent::operations_are_watched() || agent::is_captured(name)) return result;
  agent::note_event_recorded(event, name);
  agent::record_simple(shm::RecordKind::kEventRecord, shm::EventBody{number_of(event), agent::stream_number(name)});
  return result;
}

template <Hook hook>
CUresult destroy(CUevent event) noexcept {
  agent::note_event_destroyed(event);
  return real<hook>()(event);
}

template <Hook hook>
CUresult ask(CUevent event, bool waits) noexcept {
  if (!agent::operations_are_watched()) return real<hook>()(event);
  const agent::HostWait wait = agent::begin_host_wait_for_event(event);
  const CUresult result = real<hook>()(event);
  if (result != CUDA_SUCCESS) return result;
  agent::host_wait_done(wait);
  // Queries are not recorded: how often a program asks is chance.
  if (waits && agent::recording()) {
    agent::record_simple(shm::RecordKind::kSynchronize,
                         shm::SynchronizeBody{static_cast<std::uint64_t>(shm::Scope::kEvent), number_of(event)});
  }
  return result;
}

}  // namespace

CUresult cuEventRecord(CUevent event, CUstream stream) noexcept {
  return record<Hook::cuEventRecord>(event, stream, false);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) noexcept {
  return record<Hook::cuEventRecordWithFlags>(event, stream, false, flags);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) noexcept {
  return record<Hook::cuEventRecord_ptsz>(event, stream, true);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) noexcept {
  return record<Hook::cuEventRecordWithFlags_ptsz>(event, stream, true, flags);
}

CUresult cuEventDestroy(CUevent event) noexcept { return destroy<Hook::cuEventDestroy>(event); }
CUresult cuEventDestroy_v2(CUevent event) noexcept { return destroy<Hook::cuEventDestroy_v2>(event); }
CUresult cuEventSynchronize(CUevent event) noexcept {
  const agent::Uncancellable scope;
  return ask<Hook::cuEventSynchronize>(event, true);
}
CUresult cuEventQuery(CUevent event) noexcept { return ask<Hook::cuEventQuery>(event, false); }

}  // namespace memopt::preload::hooks
