// Streams and events, as the hooks tell of them (streams.h): each takes the lock, and the stream table does the rest.
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/recording/device_times.h"

namespace memopt::agent {
namespace {

// With the lock held. Nothing is noted about a stream that is not there: it would have a slot for ever.
bool exists(CUstream stream) noexcept { return arena()->known_streams.check(stream) == CUDA_SUCCESS; }

}  // namespace

void note_stream_created(CUstream stream) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->streams.created(stream);
  arena()->known_streams.created(stream);
}

void note_stream_destroyed(CUstream stream) noexcept {
  forget_stream(stream);
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->streams.destroyed(stream);
  arena()->known_streams.destroyed(stream);
}

void note_capture_begins(CUstream stream) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  if (!exists(stream)) return;
  arena()->streams.capture_begins(stream);
}

void note_capture_ended(CUstream stream) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  if (!exists(stream)) return;
  arena()->streams.capture_ended(stream);
}

HostWait begin_host_wait_for_context() noexcept {
  if (arena() == nullptr) return {};
  ArenaLock lock;
  return arena()->streams.begin_wait_for_context();
}

HostWait begin_host_wait_for_stream(StreamName stream) noexcept {
  if (arena() == nullptr) return {};
  ArenaLock lock;
  if (!exists(stream.handle)) return {};
  return arena()->streams.begin_wait_for_stream(stream);
}

HostWait begin_host_wait_for_event(CUevent event) noexcept {
  if (arena() == nullptr) return {};
  ArenaLock lock;
  return arena()->streams.begin_wait_for_event(event);
}

void host_wait_done(const HostWait& wait) noexcept {
  if (arena() == nullptr || wait.scope == 0) return;
  {
    ArenaLock lock;
    arena()->streams.completed(wait);
  }
  look_for_device_times();
}

void note_event_recorded(CUevent event, StreamName stream) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->streams.event_recorded(event, stream);
}

void note_event_destroyed(CUevent event) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->streams.event_destroyed(event);
}

void note_event_waited(StreamName stream, CUevent event) noexcept {
  if (arena() == nullptr) return;
  ArenaLock lock;
  arena()->streams.event_waited(stream, event);
}

}  // namespace memopt::agent
