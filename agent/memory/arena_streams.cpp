#include "agent/memory/arena_streams.h"

#include <utility>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/recording/device_times.h"

namespace memopt::agent {
namespace {

// Calls `what` with the stream table and the lock, where there is memory of ours to order.
template <typename What>
auto with_streams(What&& what) noexcept -> decltype(what(std::declval<StreamTable&>(), std::declval<ArenaLock&>())) {
  if (!arena_is_on()) return decltype(what(std::declval<StreamTable&>(), std::declval<ArenaLock&>()))();
  ArenaLock lock;
  return what(arena()->streams, lock);
}

// Likewise for a stream of the program's. Nothing is noted about one that is not there: it would have a slot for ever.
template <typename What>
auto with_stream(CUstream stream, What&& what) noexcept
    -> decltype(what(std::declval<StreamTable&>(), std::declval<ArenaLock&>())) {
  return with_streams([&](StreamTable& streams, ArenaLock& lock) {
    if (arena()->known_streams.check(stream) != CUDA_SUCCESS) return decltype(what(streams, lock))();
    return what(streams, lock);
  });
}

}  // namespace

void note_stream_created(CUstream stream) noexcept {
  with_streams([&](StreamTable& streams, ArenaLock&) {
    streams.created(stream);
    arena()->known_streams.created(stream);
  });
}

void note_stream_destroyed(CUstream stream) noexcept {
  forget_stream(stream);
  with_streams([&](StreamTable& streams, ArenaLock& lock) {
    streams.destroyed(lock, stream);
    arena()->known_streams.destroyed(stream);
  });
}

void note_capture_begins(CUstream stream) noexcept {
  with_stream(stream, [&](StreamTable& streams, ArenaLock& lock) { streams.capture_begins(lock, stream); });
}

void note_capture_ended(CUstream stream) noexcept {
  with_stream(stream, [&](StreamTable& streams, ArenaLock&) { streams.capture_ended(stream); });
}

void note_stream_may_be_held_up(StreamName stream) noexcept {
  with_stream(stream.handle, [&](StreamTable& streams, ArenaLock& lock) { streams.leave_event(lock, stream); });
}

HostWait begin_host_wait_for_context() noexcept {
  return with_streams([](StreamTable& streams, ArenaLock&) { return streams.begin_wait_for_context(); });
}

HostWait begin_host_wait_for_stream(StreamName stream) noexcept {
  return with_stream(stream.handle,
                     [&](StreamTable& streams, ArenaLock&) { return streams.begin_wait_for_stream(stream); });
}

HostWait begin_host_wait_for_own(StreamName stream) noexcept {
  return with_stream(stream.handle,
                     [&](StreamTable& streams, ArenaLock&) { return streams.begin_wait_for_own(stream); });
}

HostWait begin_host_wait_for_event(CUevent event) noexcept {
  return with_streams([&](StreamTable& streams, ArenaLock&) { return streams.begin_wait_for_event(event); });
}

void host_wait_done(const HostWait& wait) noexcept {
  if (!wait.uses.empty()) with_streams([&](StreamTable& streams, ArenaLock&) { streams.completed(wait); });
  look_for_device_times();
}

EventRecord begin_event_record(CUevent event, StreamName stream) noexcept {
  return with_stream(stream.handle,
                     [&](StreamTable& streams, ArenaLock&) { return streams.begin_event_record(event, stream); });
}

void event_record_done(const EventRecord& record, bool succeeded) noexcept {
  if (record.event == nullptr) return;
  with_streams([&](StreamTable& streams, ArenaLock&) { streams.event_recorded(record, succeeded); });
}

EventWait begin_event_wait(StreamName stream, CUevent event) noexcept {
  return with_stream(stream.handle,
                     [&](StreamTable& streams, ArenaLock&) { return streams.begin_event_wait(stream, event); });
}

void event_wait_done(const EventWait& wait) noexcept {
  if (wait.event == nullptr) return;
  with_streams([&](StreamTable& streams, ArenaLock&) { streams.event_waited(wait); });
}

void note_event_in_graph(CUevent event, bool external) noexcept {
  with_streams([&](StreamTable& streams, ArenaLock&) { streams.event_in_graph(event, external); });
}

void note_event_destroyed(CUevent event) noexcept {
  with_streams([&](StreamTable& streams, ArenaLock&) { streams.event_destroyed(event); });
}

void note_graph_launched() noexcept {
  with_streams([](StreamTable& streams, ArenaLock&) { streams.forget_events(); });
}

bool is_behind_free(CUevent event) noexcept {
  return with_streams([&](StreamTable& streams, ArenaLock&) { return streams.is_behind_free(event); });
}

bool is_behind_free(StreamName stream) noexcept {
  return with_stream(stream.handle, [&](StreamTable& streams, ArenaLock&) { return streams.is_behind_free(stream); });
}

}  // namespace memopt::agent
