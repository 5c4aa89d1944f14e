#include "agent/order/stream_table.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace memopt::agent {
namespace {

// A number that is this thread's for its whole life and no other's at the same time.
std::uint64_t this_thread() noexcept {
  static thread_local std::uint64_t number __attribute__((tls_model("initial-exec"))) = 0;
  if (number == 0) number = static_cast<std::uint64_t>(syscall(SYS_gettid));
  return number;
}

std::size_t place_of(CUevent event, std::size_t places) noexcept {
  return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(event) * 0x9e3779b97f4a7c15u) >> 40) % places;
}

}  // namespace

StreamSlot StreamTable::look_up(StreamName name) noexcept {
  // The special handles: 1 is the legacy default stream, 2 the calling thread's own.
  const bool own = name.handle == CU_STREAM_PER_THREAD || (name.handle == nullptr && name.per_thread);
  if (!own && (name.handle == nullptr || name.handle == CU_STREAM_LEGACY)) {
    streams_[kLegacySlot].used = true;
    return kLegacySlot;
  }
  const std::uint64_t thread = own ? this_thread() : 0;
  const CUstream handle = own ? CU_STREAM_PER_THREAD : name.handle;
  StreamSlot free = kNone;
  StreamSlot found = kNone;
  for (StreamSlot slot = 1; slot < kOverflowSlot; ++slot) {
    const Stream& stream = streams_[slot];
    if (stream.used && stream.handle == handle && stream.thread == thread) {
      found = slot;
      break;
    }
    if (!stream.used && free == kNone && reusable(slot)) free = slot;
  }
  if (found == kNone && free == kNone) {
    streams_[kOverflowSlot].used = true;
    return kOverflowSlot;
  }
  if (found == kNone) {
    found = free;
    Stream& stream = streams_[found];
    stream.handle = handle;
    stream.thread = thread;
    stream.used = true;
    // Positions go on from a former stream of this slot, so that old uses stay comparable: they are complete, or have
    // their events.
    stream.behind.fill(0);
  }
  if (!own) {
    last_ = name;
    last_slot_ = found;
  }
  return found;
}

// A destroyed stream's slot is taken again only when its work is over: what its uses were is asked by number.
bool StreamTable::reusable(StreamSlot slot) noexcept {
  Stream& stream = streams_[slot];
  if (stream.position <= stream.completed) return true;
  const RecordedEvent* const event = event_after(stream, stream.position);
  if (event == nullptr || driver_.event_query(event->event) != CUDA_SUCCESS) return false;
  stream.completed = stream.position;
  return true;
}

// A stream may have been drawn into a capture by an event, which no hook shows.
bool StreamTable::captures(const Stream& stream) const noexcept {
  if (stream.capturing) return true;
  if (capturing_ == 0) [[likely]]
    return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver_.stream_is_capturing(name_of(stream), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void StreamTable::first_operation(StreamSlot slot) noexcept {
  ++active_;
  if (active_ != 2) return;
  // Until now no release got an event, since there was nobody else to wait for it. One for all of them:
  for (StreamSlot other = 0; other < kStreamSlots; ++other) {
    if (other != slot && streams_[other].position != 0) record(other);
  }
}

bool StreamTable::usable_here(const Stream& stream) const noexcept {
  return stream.thread == 0 || stream.thread == this_thread();
}

CUstream StreamTable::name_of(const Stream& stream) const noexcept {
  return &stream == &streams_[kLegacySlot] ? CU_STREAM_LEGACY : stream.handle;
}

const StreamTable::RecordedEvent* StreamTable::event_after(const Stream& stream,
                                                           std::uint64_t position) const noexcept {
  const RecordedEvent* best = nullptr;
  const std::uint64_t count = std::min<std::uint64_t>(stream.events, kEvents);
  for (std::uint64_t i = 0; i < count; ++i) {
    const RecordedEvent& recorded = stream.ring[(stream.events - 1 - i) % kEvents];
    if (recorded.event == nullptr || recorded.position < position) break;
    best = &recorded;
  }
  return best;
}

bool StreamTable::record(StreamSlot slot) noexcept {
  Stream& stream = streams_[slot];
  if (slot == kOverflowSlot || !stream.used || !usable_here(stream) || captures(stream)) return false;
  RecordedEvent& place = stream.ring[stream.events % kEvents];
  if (place.event == nullptr && driver_.event_create(&place.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    place.event = nullptr;
    return false;
  }
  // The oldest event is recorded anew: uses that it stood for are served by the next one.
  if (driver_.event_record(place.event, name_of(stream)) != CUDA_SUCCESS) return false;
  // Not what other threads are just about to queue.
  place.position = in_flight_covered(slot, stream.position);
  ++stream.events;
  return true;
}

bool StreamTable::needs_event(StreamUse use) const noexcept {
  const Stream& stream = streams_[use.slot];
  if (use.position <= stream.completed) return false;
  return event_after(stream, use.position) == nullptr;
}

void StreamTable::record_events(Release& release) noexcept {
  if (one_stream()) return;
  if (release.everything) {
    for (StreamSlot slot = 0; slot < kStreamSlots; ++slot) {
      const Stream& stream = streams_[slot];
      if (stream.position == 0 || !needs_event({slot, stream.position})) continue;
      if (!record(slot)) release.unordered = true;
    }
    return;
  }
  for (std::uint32_t i = 0; i < release.count; ++i) {
    if (needs_event(release.uses[i]) && !record(release.uses[i].slot)) release.unordered = true;
  }
}

void StreamTable::wait_for(StreamSlot slot, StreamUse use) noexcept {
  Stream& waiting = streams_[slot];
  const Stream& awaited = streams_[use.slot];
  if (slot == use.slot && slot != kOverflowSlot) return;
  if (use.position <= awaited.completed || use.position <= waiting.behind[use.slot]) return;
  const RecordedEvent* event = event_after(awaited, use.position);
  if (event == nullptr && record(use.slot)) event = event_after(awaited, use.position);
  if (event == nullptr || slot == kOverflowSlot || !usable_here(waiting) || captures(waiting) ||
      driver_.stream_wait_event(name_of(waiting), event->event, 0) != CUDA_SUCCESS) {
    finish_stream(use.slot, use.position);
    return;
  }
  ++counts_.waits;
  waiting.behind[use.slot] = event->position;
}

void StreamTable::wait(StreamSlot slot, const Release& release) noexcept {
  if (release.unordered && !is_over(release, false)) {
    finish_all();
    return;
  }
  if (release.everything) {
    for (StreamSlot other = 0; other < kStreamSlots; ++other) {
      if (streams_[other].position == 0) continue;
      // The newest event was recorded at the release, or after it.
      const Stream& stream = streams_[other];
      const std::uint64_t position =
          stream.events != 0 ? stream.ring[(stream.events - 1) % kEvents].position : stream.position;
      wait_for(slot, {other, position});
    }
    return;
  }
  for (std::uint32_t i = 0; i < release.count; ++i) wait_for(slot, release.uses[i]);
}

bool StreamTable::is_over(const Release& release, bool ask) noexcept {
  const auto over = [&](StreamUse use) {
    Stream& stream = streams_[use.slot];
    if (use.position <= stream.completed) return true;
    if (!ask) return false;
    const RecordedEvent* const event = event_after(stream, use.position);
    if (event == nullptr) {
      record(static_cast<StreamSlot>(use.slot));  // so that there is an answer when it is asked for again
      return false;
    }
    if (driver_.event_query(event->event) != CUDA_SUCCESS) return false;
    stream.completed = std::max(stream.completed, event->position);
    return true;
  };
  if (release.everything || release.unordered) {
    for (StreamSlot slot = 0; slot < kStreamSlots; ++slot) {
      if (streams_[slot].position != 0 && !over({slot, streams_[slot].position})) return false;
    }
    return true;
  }
  for (std::uint32_t i = 0; i < release.count; ++i) {
    if (!over(release.uses[i])) return false;
  }
  return true;
}

bool StreamTable::finish_all() noexcept {
  ++counts_.host_waits;
  const HostWait all = begin_wait_for_context();
  if (driver_.synchronize_context() != CUDA_SUCCESS) return false;
  completed(all);
  return true;
}

bool StreamTable::finish_stream(StreamSlot slot, std::uint64_t position) noexcept {
  Stream& stream = streams_[slot];
  if (position <= stream.completed) return true;
  if (slot == kOverflowSlot || !stream.used || !usable_here(stream)) return finish_all();
  if (const RecordedEvent* const event = event_after(stream, position)) {
    ++counts_.host_waits;
    const std::uint64_t reached = event->position;
    if (driver_.event_synchronize(event->event) != CUDA_SUCCESS) return false;
    stream.completed = std::max(stream.completed, reached);
    return true;
  }
  ++counts_.host_waits;
  const std::uint64_t reached = in_flight_covered(slot, stream.position);
  if (driver_.stream_synchronize(name_of(stream)) != CUDA_SUCCESS) return false;
  stream.completed = std::max(stream.completed, reached);
  return true;
}

bool StreamTable::finish(const Release& release) noexcept {
  if (is_over(release, false)) return true;
  if (release.everything || release.unordered) return finish_all();
  for (std::uint32_t i = 0; i < release.count; ++i) {
    if (!finish_stream(release.uses[i].slot, release.uses[i].position)) return false;
  }
  return true;
}

void StreamTable::wait_for_visible() noexcept {
  bool pending = false;
  for (StreamSlot slot = 0; slot < kStreamSlots; ++slot) {
    Stream& stream = streams_[slot];
    if (stream.visible > stream.completed && !stream.capturing) {
      if (!finish_stream(slot, stream.visible)) pending = true;
    }
    if (stream.visible <= stream.completed) stream.visible = 0;
  }
  any_visible_ = pending;
}

void StreamTable::created(CUstream) noexcept { last_slot_ = kNone; }

void StreamTable::destroyed(CUstream handle) noexcept {
  last_slot_ = kNone;
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) return;
  for (StreamSlot slot = 1; slot < kOverflowSlot; ++slot) {
    Stream& stream = streams_[slot];
    if (!stream.used || stream.handle != handle) continue;
    // Uses of this stream may still be asked about: they are served by an event recorded now.
    const bool over = stream.position <= stream.completed;
    if (!over && event_after(stream, stream.position) == nullptr && !record(slot)) finish_all();
    stream.used = false;
    stream.handle = nullptr;
    if (stream.capturing) {
      stream.capturing = false;
      --capturing_;
    }
    return;
  }
}

void StreamTable::capture_begins(CUstream handle) noexcept {
  const StreamSlot slot = slot_of({handle, false});
  Stream& stream = streams_[slot];
  // Nothing can be recorded on it from now on.
  if (active_ > 1 && stream.position > stream.completed) record(slot);
  if (!stream.capturing) {
    stream.capturing = true;
    ++capturing_;
  }
}

void StreamTable::capture_ended(CUstream handle) noexcept {
  Stream& stream = streams_[slot_of({handle, false})];
  if (stream.capturing) {
    stream.capturing = false;
    --capturing_;
  }
}

HostWait StreamTable::begin_wait_for_context() const noexcept {
  HostWait wait;
  wait.scope = 1;
  for (StreamSlot slot = 0; slot < kStreamSlots; ++slot) {
    if (streams_[slot].position != 0) wait.positions[slot] = in_flight_covered(slot, streams_[slot].position);
  }
  return wait;
}

HostWait StreamTable::begin_wait_for_stream(StreamName name) noexcept {
  HostWait wait;
  wait.scope = 2;
  wait.slot = slot_of(name);
  wait.positions[wait.slot] = in_flight_covered(wait.slot, streams_[wait.slot].position);
  if (wait.slot == kOverflowSlot) wait.scope = 0;
  return wait;
}

HostWait StreamTable::begin_wait_for_event(CUevent event) const noexcept {
  HostWait wait;
  if (const ProgramEvent* const known = find_event(event)) {
    wait.scope = 2;
    wait.slot = known->slot;
    wait.positions[wait.slot] = known->position;
  }
  return wait;
}

void StreamTable::completed(const HostWait& wait) noexcept {
  if (wait.scope == 1) {
    for (StreamSlot slot = 0; slot < kStreamSlots; ++slot) {
      streams_[slot].completed = std::max(streams_[slot].completed, wait.positions[slot]);
    }
  } else if (wait.scope == 2) {
    Stream& stream = streams_[wait.slot];
    stream.completed = std::max(stream.completed, wait.positions[wait.slot]);
  }
}

const StreamTable::ProgramEvent* StreamTable::find_event(CUevent event) const noexcept {
  const ProgramEvent& known = program_events_[place_of(event, kProgramEvents)];
  return event != nullptr && known.event == event ? &known : nullptr;
}

void StreamTable::event_recorded(CUevent event, StreamName name) noexcept {
  if (event == nullptr) return;
  const StreamSlot slot = slot_of(name);
  ProgramEvent& place = program_events_[place_of(event, kProgramEvents)];
  if (slot == kOverflowSlot || streams_[slot].capturing) {
    if (place.event == event) place = {};
    return;
  }
  place = {event, slot, in_flight_covered(slot, streams_[slot].position)};
}

void StreamTable::event_destroyed(CUevent event) noexcept {
  ProgramEvent& place = program_events_[place_of(event, kProgramEvents)];
  if (place.event == event) place = {};
}

void StreamTable::event_waited(StreamName name, CUevent event) noexcept {
  const ProgramEvent* const known = find_event(event);
  if (known == nullptr) return;
  const StreamSlot slot = slot_of(name);
  Stream& stream = streams_[slot];
  if (slot == kOverflowSlot || stream.capturing) return;
  stream.behind[known->slot] = std::max(stream.behind[known->slot], known->position);
}

void StreamTable::forget() noexcept {
  last_slot_ = kNone;
  last_ = {};
  active_ = 0;
  capturing_ = 0;
  any_visible_ = false;
  streams_ = {};
  program_events_ = {};
}

}  // namespace memopt::agent
