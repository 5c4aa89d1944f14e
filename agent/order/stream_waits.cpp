// The table's calls of the driver: events of ours, waits of streams, waits of the host.
#include <algorithm>
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
  for (std::uint32_t i = 0; i < stream.events; ++i) {
    if (stream.ring[i]->reach.covers(position)) return stream.ring[i];
  }
  return nullptr;
}

bool StreamTable::lacks_event(const Stream& stream, std::uint64_t position) const noexcept {
  if (position <= stream.completed) return false;
  return !stream.reached.covers(position) && event_after(stream, position) == nullptr;
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

// In the order in which they were recorded; one that stands for nothing further is not kept.
void StreamTable::keep(Stream& stream, OwnEvent* event) noexcept {
  if (stream.events != 0) {
    const Reach& newest = stream.ring[stream.events - 1]->reach;
    if (newest.holes == 0 && newest.position >= event->reach.position) {
      drop(event);
      return;
    }
  }
  if (stream.events == kEvents) {
    drop(stream.ring[0]);
    std::copy(stream.ring.begin() + 1, stream.ring.end(), stream.ring.begin());
    --stream.events;
  }
  stream.ring[stream.events++] = event;
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

bool StreamTable::record(ArenaLock& lock, StreamSlot slot) noexcept {
  Stream& stream = *streams_[slot];
  if (slot == kOverflowSlot || !stream.used) return false;
  CUstream name = name_of(stream);
  if (usable_here(stream)) {
    if (captures(stream)) return false;
  } else {
    // Another thread's default stream has no name here. The legacy stream waits for all that blocking streams have, and
    // they for it: not where that may wait for the host, or spoil a capture.
    if (any_visible_ || captures_are_open()) return false;
    name = CU_STREAM_LEGACY;
  }
  OwnEvent* const event = take_event();
  if (event == nullptr) return false;
  // Before the call: what other threads queue meanwhile may come behind it.
  event->reach = reach(slot);
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
  keep(stream, event);
  return true;
}

void StreamTable::leave_event(ArenaLock& lock, StreamName name) noexcept {
  const StreamSlot slot = slot_of(name);
  if (lacks_event(*streams_[slot], streams_[slot]->position)) record(lock, slot);
}

bool StreamTable::needs_events(const Release& release) const noexcept {
  if (one_stream()) return false;
  for (std::uint32_t i = 0; i < release.count; ++i) {
    if (lacks_event(*streams_[release.uses[i].slot], release.uses[i].position)) return true;
  }
  return release.everything;
}

void StreamTable::record_events(ArenaLock& lock, Release& release) noexcept {
  if (one_stream()) return;
  for (std::uint32_t i = 0; i < release.count; ++i) {
    const StreamUse use = release.uses[i];
    if (lacks_event(*streams_[use.slot], use.position) && !record(lock, use.slot)) release.unordered = true;
  }
  if (release.everything) cut();
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

void StreamTable::wait_for(ArenaLock& lock, StreamSlot slot, StreamUse use) noexcept {
  OwnEvent* event = event_after(*streams_[use.slot], use.position);
  if (event == nullptr && record(lock, use.slot)) event = event_after(*streams_[use.slot], use.position);
  Stream& waiting = *streams_[slot];
  if (event == nullptr || slot == kOverflowSlot || !waiting.used || !usable_here(waiting) || captures(waiting)) {
    finish_use(lock, use);
    return;
  }
  const CUstream name = name_of(waiting);
  const std::uint64_t position = event->reach.whole();
  const std::uint64_t table = table_;
  ++event->pins;
  ++waiting.pins;
  CUresult result = CUDA_SUCCESS;
  {
    const Unlocked unlocked(lock);
    const CurrentContext current(driver_, context_);
    result = driver_.stream_wait_event(name, event->handle, 0);
  }
  --waiting.pins;
  unpin(event);
  if (table != table_) return;
  if (result != CUDA_SUCCESS) {
    finish_use(lock, use);
    return;
  }
  ++counts_.waits;
  try {
    if (waiting.behind.size() <= use.slot) waiting.behind.resize(streams_.size(), 0);
    waiting.behind[use.slot] = std::max(waiting.behind[use.slot], position);
  } catch (const std::bad_alloc&) {
    // It will be put behind once more.
  }
}

void StreamTable::has_reached(Stream& stream, const Reach& reached) noexcept {
  stream.completed = std::max(stream.completed, reached.whole());
  if (reached.position > stream.reached.position) stream.reached = reached;
}

CUresult StreamTable::finish_use(ArenaLock& lock, StreamUse use) noexcept {
  Stream& stream = *streams_[use.slot];
  if (is_known_over(use)) return CUDA_SUCCESS;
  const std::uint64_t table = table_;
  CUresult result = CUDA_SUCCESS;
  Reach reached;
  if (OwnEvent* const event = event_after(stream, use.position)) {
    ++counts_.host_waits;
    reached = event->reach;
    ++event->pins;
    {
      const Unlocked unlocked(lock);
      result = driver_.event_synchronize(event->handle);
    }
    unpin(event);
  } else if (use.slot != kOverflowSlot && stream.used && usable_here(stream) && !captures(stream)) {
    ++counts_.host_waits;
    // What is announced is not queued yet, and not waited for.
    reached = reach(use.slot);
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
  if (result == CUDA_SUCCESS && table == table_) has_reached(stream, reached);
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
  if (release.everything) return finish_all(lock);
  CUresult result = CUDA_SUCCESS;
  for (std::uint32_t i = 0; i < release.count && result == CUDA_SUCCESS; ++i) {
    result = finish_use(lock, release.uses[i]);
  }
  return result;
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
