// What the hooks tell of streams and events, and ask about them. Each takes the arena's lock itself; any thread.
#pragma once

#include <cuda.h>

#include "agent/order/stream_table.h"

namespace memopt::agent {

void note_stream_created(CUstream stream) noexcept;
void note_stream_destroyed(CUstream stream) noexcept;  // before the driver's call: releases get their events
void note_capture_begins(CUstream stream) noexcept;    // before the driver's call
void note_capture_ended(CUstream stream) noexcept;
// Something that may hold the stream up for as long as the host pleases is about to be queued.
void note_stream_may_be_held_up(StreamName stream) noexcept;

// The host waits for (or asks, and finds complete) all work of a stream, of the context, or of an event: `begin` before
// the driver's call, `done` after its success.
HostWait begin_host_wait_for_context() noexcept;
HostWait begin_host_wait_for_stream(StreamName stream) noexcept;
HostWait begin_host_wait_for_own(StreamName stream) noexcept;  // for the calling thread's copy, which is announced
HostWait begin_host_wait_for_event(CUevent event) noexcept;
void host_wait_done(const HostWait& wait) noexcept;

// Likewise for an event that is recorded, which is done also where the call has failed, and for one that a stream is
// made to wait for.
EventRecord begin_event_record(CUevent event, StreamName stream) noexcept;
void event_record_done(const EventRecord& record, bool succeeded) noexcept;
EventWait begin_event_wait(StreamName stream, CUevent event) noexcept;
void event_wait_done(const EventWait& wait) noexcept;
void note_event_in_graph(CUevent event, bool external) noexcept;
void note_event_destroyed(CUevent event) noexcept;
void note_graph_launched() noexcept;

// A plain free that did not wait as the driver's does stands between now and what is asked about: natively the answer
// is that it is complete (stream_table.h).
bool is_behind_free(CUevent event) noexcept;
bool is_behind_free(StreamName stream) noexcept;

}  // namespace memopt::agent
