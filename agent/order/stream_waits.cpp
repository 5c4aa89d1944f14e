// The table's calls of the driver: events of ours, waits of streams, waits of the host.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <new>

#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

// A stream may have been drawn into a capture by an event, which no hook shows.
bool StreamTable::captures(const Stream& stream) const noexcept {
  if (stream.capturing) return true;
  if (capturing_ == 0) [[likely]]
    return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver_.stream_is_capturing(name_of(stream), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool StreamTable::usable_here(const Stream& stream) const noexcept {
  return stream.thread == 0 || stream.thread == this_thread();
}

CUstream StreamTable::name_of(const Stream& stream) const noexcept { return stream.handle; }

// The oldest event that stands for the position: what was queued behind it need not be waited for.
StreamTable::OwnEvent* StreamTable::event_after(const Stream& stream, std::uint64_t position) const noexcept {
  return stream.ring.at_or_behind(position);
}

bool StreamTable::lacks_event(const Stream& stream, std::uint64_t position) const noexcept {
  if (position <= stream.completed) return false;
  return stream.ring.size() == 0 || stream.ring.last()->position < position;
}

StreamTable::OwnEvent* StreamTable::take_event() noexcept {
  if (!spare_.empty()) {
    OwnEvent* const event = spare_.back();
    spare_.pop_back();
    return event;
  }
  auto* const event = new (std::nothrow) OwnEvent;
  if (event == nullptr) return nullptr;
  event->table = table_;
  const CurrentContext current(driver_, context_);
  if (driver_.event_create(&event->handle, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) return event;
  delete event;
  return nullptr;
}

bool StreamTable::create_stream(CUstream* stream) noexcept {
  const CurrentContext current(driver_, context_);
  return driver_.stream_create != nullptr && driver_.stream_create(stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
}

bool StreamTable::is_blocking(const Key& key) const noexcept {
  unsigned int flags = 0;
  return key.thread != 0 || driver_.stream_flags == nullptr ||
         driver_.stream_flags(key.handle, &flags) != CUDA_SUCCESS || (flags & CU_STREAM_NON_BLOCKING) == 0;
}

// In the order of their positions; one that stands for nothing further is not kept.
void StreamTable::keep(Stream& stream, OwnEvent* event) noexcept {
  EventRing<OwnEvent>& ring = stream.ring;
  if (ring.size() != 0 && ring.last()->position >= event->position) {
    drop(event);
    return;
  }
  if (ring.full()) make_room(stream);
  if (ring.full()) {
    drop(event);
  } else {
    ring.add(event);
  }
}

// What the device is behind is of no use any more. A query for each half of the ring.
void StreamTable::make_room(Stream& stream) noexcept {
  EventRing<OwnEvent>& ring = stream.ring;
  if (ring.size() != 0 && stream.look_in == 0) {
    const OwnEvent& middle = *ring[ring.size() / 2];
    // A query would spoil a capture.
    if (!captures_are_open() && driver_.event_query(middle.handle) == CUDA_SUCCESS) {
      stream.completed = std::max(stream.completed, middle.position);
    } else if (ring.grow()) {
      return;
    } else {
      stream.look_in = static_cast<std::uint32_t>(ring.size() / 2);
    }
  }
  if (ring.size() == 0) {
    ring.grow();
    return;
  }
  stream.look_in -= stream.look_in != 0 ? 1 : 0;
  do {
    drop(ring.take_first());
  } while (ring.size() != 0 && ring[0]->position <= stream.completed);
}

void StreamTable::drop(OwnEvent* event) noexcept {
  event->dropped = true;
  if (event->pins != 0) return;
  event->dropped = false;
  if (event->table != table_) {
    delete event;
    return;
  }
  try {
    spare_.push_back(event);
  } catch (const std::bad_alloc&) {
    driver_.event_destroy(event->handle);
    delete event;
  }
}

void StreamTable::unpin(OwnEvent* event) noexcept {
  if (--event->pins == 0 && event->dropped) drop(event);
}

bool StreamTable::record(ArenaLock& lock, StreamSlot slot, OwnEvent** made, ByLegacy by_legacy) noexcept {
  Stream& stream = *streams_[slot];
  if (slot == kOverflowSlot || !stream.used) return false;
  CUstream name = name_of(stream);
  if (usable_here(stream)) {
    if (captures(stream)) return false;
  } else {
    // It would spoil a capture.
    if (captures_are_open() || (any_visible_ && by_legacy != ByLegacy::kAlways)) return false;
    name = CU_STREAM_LEGACY;
  }
  OwnEvent* const event = take_event();
  if (event == nullptr) return false;
  // Before the call: what other threads queue meanwhile may come behind it.
  event->position = covered(slot);
  const std::uint64_t table = table_;
  ++stream.pins;
  CUresult result = CUDA_SUCCESS;
  {
    const Unlocked unlocked(lock);
    const CurrentContext current(driver_, context_);
    result = driver_.event_record(event->handle, name);
  }
  --stream.pins;
  // The context may have gone, and the event with it.
  if (result != CUDA_SUCCESS || table != table_) {
    drop(event);
    return false;
  }
  if (made != nullptr) {
    ++event->pins;
    *made = event;
  }
  keep(stream, event);
  return true;
}

void StreamTable::stand_in_order(ArenaLock& lock, StreamSlot slot) noexcept {
  Stream& stream = *streams_[slot];
  const Stream& legacy = *streams_[kLegacySlot];
  if (slot == kLegacySlot) {
    if (lacks_event(stream, stream.position)) record(lock, slot);
    return;
  }
  if (slot != kOverflowSlot && !stream.blocking) return;
  const std::uint64_t orders = legacy_orders_;
  if (legacy.position <= std::max(legacy.completed, stream.behind_legacy) && orders == stream.behind_orders) return;
  // Before the call: what is only announced now is not what the event comes behind.
  const std::uint64_t queued = covered(kLegacySlot);
  if (slot == kOverflowSlot) {
    finish_use(lock, {kLegacySlot, queued});
  } else if (record(lock, slot)) {
    stream.behind_legacy = std::max(stream.behind_legacy, queued);
    stream.behind_orders = std::max(stream.behind_orders, orders);
  }
}

void StreamTable::leave_event(ArenaLock& lock, StreamName name) noexcept {
  const StreamSlot slot = slot_of(name);
  note_order(slot);  // a wait for the host, it may be
  streams_[slot]->held_up = streams_[slot]->position + 1;
  any_held_up_ = true;
  if (lacks_event(*streams_[slot], streams_[slot]->position)) record(lock, slot);
}

bool StreamTable::needs_events(const Release& release) const noexcept {
  if (one_stream()) return false;
  for (std::uint32_t i = 0; i < release.count; ++i) {
    if (lacks_event(*streams_[release.uses[i].slot], release.uses[i].position)) return true;
  }
  return release.everything();
}

void StreamTable::record_events(ArenaLock& lock, Release& release) noexcept {
  if (one_stream()) return;
  for (std::uint32_t i = 0; i < release.count; ++i) {
    const StreamUse use = release.uses[i];
    if (lacks_event(*streams_[use.slot], use.position) && !record(lock, use.slot)) release.unordered = true;
  }
  if (release.everything()) cut();
}

void StreamTable::record_wanted(ArenaLock& lock) noexcept {
  wants_events_ = false;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    if (!streams_[slot]->wants_event) continue;
    streams_[slot]->wants_event = false;
    if (lacks_event(*streams_[slot], streams_[slot]->position)) record(lock, slot);
  }
}

void StreamTable::wait(ArenaLock& lock, StreamSlot slot, const UseSet& needs) noexcept {
  if (needs.everything()) {
    wait_for_all(lock, slot);
    return;
  }
  for (const StreamUse use : needs.uses()) {
    if (!is_satisfied(slot, use)) wait_for(lock, slot, use);
  }
}

void StreamTable::wait(ArenaLock& lock, StreamSlot slot, const Release& release) noexcept {
  UseSet needs;
  if (!add_needs(slot, release, &needs)) wait(lock, slot, needs);
}

// The stream is put behind the event, which is pinned. False: the driver refused, or has lost the context.
bool StreamTable::make_wait(ArenaLock& lock, StreamSlot slot, StreamSlot behind, OwnEvent* event) noexcept {
  Stream& waiting = *streams_[slot];
  const CUstream name = name_of(waiting);
  const std::uint64_t position = event->position;
  const std::uint64_t table = table_;
  ++waiting.pins;
  CUresult result = CUDA_SUCCESS;
  {
    const Unlocked unlocked(lock);
    const CurrentContext current(driver_, context_);
    result = driver_.stream_wait_event(name, event->handle, 0);
  }
  --waiting.pins;
  if (result != CUDA_SUCCESS || table != table_) return false;
  ++counts_.waits;
  // What has been folded has its place from the moment on at which it counts as folded.
  if (slot == kFoldSlot) ++waiting.position;
  try {
    if (waiting.behind.size() <= behind) waiting.behind.resize(streams_.size(), 0);
    waiting.behind[behind] = std::max(waiting.behind[behind], position);
  } catch (const std::bad_alloc&) {
    // It will be put behind once more.
  }
  return true;
}

void StreamTable::wait_for(ArenaLock& lock, StreamSlot slot, StreamUse use) noexcept {
  OwnEvent* event = event_after(*streams_[use.slot], use.position);
  if (event == nullptr && record(lock, use.slot, nullptr, ByLegacy::kAlways)) {
    event = event_after(*streams_[use.slot], use.position);
  }
  const Stream& waiting = *streams_[slot];
  bool waits = event != nullptr && slot != kOverflowSlot && waiting.used && usable_here(waiting) && !captures(waiting);
  if (waits) {
    ++event->pins;
    waits = make_wait(lock, slot, use.slot, event);
    unpin(event);
  }
  if (!waits) finish_use(lock, use);
}

// For all that is queued on the stream, up to the position and beyond, where positions don't tell what is.
void StreamTable::wait_for_queued(ArenaLock& lock, StreamSlot slot, StreamUse use, ByLegacy by_legacy) noexcept {
  OwnEvent* event = event_after(*streams_[use.slot], use.position);
  if (event != nullptr) {
    ++event->pins;
  } else if (!record(lock, use.slot, &event, by_legacy)) {
    finish_use(lock, use);
    return;
  }
  if (!make_wait(lock, slot, use.slot, event)) finish_use(lock, use);
  unpin(event);
}

CUresult StreamTable::finish_use(ArenaLock& lock, StreamUse use) noexcept {
  Stream& stream = *streams_[use.slot];
  // A wait for the context would spoil the capture. An event stands for what was queued when it began, and a launch of
  // the graph is a use of its own.
  std::uint64_t position = use.position;
  if (stream.capturing) position = std::min(position, stream.captured_from);
  if (position <= stream.completed) return CUDA_SUCCESS;
  const std::uint64_t table = table_;
  CUresult result = CUDA_SUCCESS;
  std::uint64_t reached = 0;
  if (OwnEvent* const event = event_after(stream, position)) {
    ++counts_.host_waits;
    reached = event->position;
    ++event->pins;
    {
      const Unlocked unlocked(lock);
      result = driver_.event_synchronize(event->handle);
    }
    unpin(event);
  } else if (use.slot != kOverflowSlot && stream.used && usable_here(stream) && !captures(stream)) {
    ++counts_.host_waits;
    // What is announced is not queued yet, and not waited for.
    reached = covered(use.slot);
    const CUstream name = name_of(stream);
    ++stream.pins;
    {
      const Unlocked unlocked(lock);
      const CurrentContext current(driver_, context_);
      result = driver_.stream_synchronize(name);
    }
    --stream.pins;
  } else {
    return finish_all(lock);
  }
  if (result == CUDA_SUCCESS && table == table_) stream.completed = std::max(stream.completed, reached);
  return result;
}

CUresult StreamTable::finish_all(ArenaLock& lock) noexcept {
  ++counts_.host_waits;
  const HostWait all = begin_wait_for_context();
  const std::uint64_t table = table_;
  CUresult result = CUDA_SUCCESS;
  {
    const Unlocked unlocked(lock);
    const CurrentContext current(driver_, context_);
    result = driver_.synchronize_context();
  }
  if (result == CUDA_SUCCESS && table == table_) {
    full_ = false;
    completed(all);
  }
  return result;
}

CUresult StreamTable::finish(ArenaLock& lock, const Release& release) noexcept {
  if (is_over(release, false)) return CUDA_SUCCESS;
  if (release.everything()) return finish_all(lock);
  CUresult result = CUDA_SUCCESS;
  for (std::uint32_t i = 0; i < release.count && result == CUDA_SUCCESS; ++i) {
    result = finish_use(lock, release.uses[i]);
  }
  return result;
}

CUresult StreamTable::finish_or_give_up(ArenaLock& lock, const Release& release) noexcept {
  // The first ones without a pause: as a rule it is a matter of microseconds. How long a look takes is the driver's.
  constexpr int kQuickLooks = 20'000;
  constexpr timespec kPause{0, 100'000};
  constexpr std::chrono::milliseconds kPatience{200};
  if (!may_be_held_up()) return finish(lock, release);
  Release events = release;
  record_events(lock, events);
  const std::uint64_t table = table_;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (int look = 0; look == 0 || std::chrono::steady_clock::now() < until; ++look) {
    if (table != table_ || is_over(release, true)) return CUDA_SUCCESS;
    if (wants_events_) record_wanted(lock);
    const Unlocked unlocked(lock);
    if (look < kQuickLooks) {
      sched_yield();
    } else {
      nanosleep(&kPause, nullptr);
    }
  }
  return CUDA_ERROR_NOT_READY;
}

CUresult StreamTable::finish_host_visible(ArenaLock& lock) noexcept {
  if (!any_visible_) return CUDA_SUCCESS;
  UseSet uses;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    const Stream& stream = *streams_[slot];
    if (stream.visible > stream.completed) uses.append({slot, stream.visible});
  }
  CUresult result = CUDA_SUCCESS;
  if (uses.everything()) result = finish_all(lock);
  for (const StreamUse use : uses.uses()) {
    const CUresult one = finish_use(lock, use);
    if (result == CUDA_SUCCESS) result = one;
  }
  // Others may have been queued meanwhile, and those that could not be waited for are visible still.
  any_visible_ = std::any_of(streams_.begin(), streams_.end(),
                             [](const auto& stream) { return stream->visible > stream->completed; });
  return result;
}

}  // namespace memopt::agent
