// The table: which slot a stream has, what was begun on it, what is known to be over.
#include "agent/order/stream_table.h"

#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>

namespace memopt::agent {
namespace {

// What a thread remembers of its own default stream.
struct OwnStream {
  std::uint64_t table;
  ThreadNumber thread;
  StreamSlot slot;
};
constinit thread_local OwnStream t_own_stream __attribute__((tls_model("initial-exec"))) = {};

constinit std::uint64_t g_tables = 0;

}  // namespace

StreamTable::StreamTable(const Driver& driver) : driver_(driver), table_(++g_tables) {
  while (streams_.size() < kFirstSlot && add_slot()) {
  }
  for (const StreamSlot slot : {kLegacySlot, kOverflowSlot}) streams_[slot]->used = true;
  streams_[kLegacySlot]->handle = CU_STREAM_LEGACY;
}

StreamTable::~StreamTable() { forget(); }

bool StreamTable::add_slot() noexcept {
  try {
    streams_.reserve(streams_.size() + 1);
    // A slot that is retired needs no memory for that.
    retired_.reserve(streams_.size() + 1);
    own_.reserve(streams_.size() + 1);
    unfolded_.reserve(streams_.size() + 1);
    streams_.push_back(std::make_unique<Stream>());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

StreamSlot StreamTable::look_up(StreamName name) noexcept {
  if (is_legacy(name)) return remember(name, kLegacySlot);
  const bool own = is_own_default(name);
  const ThreadNumber thread = own ? this_thread() : 0;
  if (own && t_own_stream.table == table_ && t_own_stream.thread == thread) return t_own_stream.slot;
  const Key key{own ? CU_STREAM_PER_THREAD : name.handle, thread};
  const auto known = slots_.find(key);
  const StreamSlot slot = known != slots_.end() ? known->second : make_slot(key);
  if (slot == kOverflowSlot) return slot;
  if (!own) return remember(name, slot);
  t_own_stream = {table_, thread, slot};
  return slot;
}

StreamSlot StreamTable::make_slot(const Key& key) noexcept {
  if (key.thread != 0 && own_.size() >= look_at_own_) retire_ended_threads();
  StreamSlot slot = take_retired();
  if (slot == kNone && streams_.size() < kMostSlots && add_slot()) slot = static_cast<StreamSlot>(streams_.size() - 1);
  const bool blocking = slot == kNone || is_blocking(key);
  blocking_ = blocking_ || blocking;
  if (slot == kNone) {
    full_ = true;
    return kOverflowSlot;
  }
  try {
    slots_.emplace(key, slot);
  } catch (const std::bad_alloc&) {
    retired_.push_back(slot);
    return kOverflowSlot;
  }
  full_ = false;
  Stream& stream = *streams_[slot];
  if (stream.position != 0) ++reuses_;
  stream.handle = key.handle;
  stream.thread = key.thread;
  stream.used = true;
  stream.blocking = blocking;
  // Positions go on from a former stream of this slot, so that old uses stay comparable: they are complete.
  stream.behind.clear();
  stream.behind_barrier = stream.behind_cut = stream.behind_legacy = stream.behind_orders = 0;
  if (key.thread != 0) own_.push_back(slot);
  return slot;
}

void StreamTable::retire(StreamSlot slot) noexcept {
  Stream& stream = *streams_[slot];
  slots_.erase({stream.handle, stream.thread});
  if (stream.thread != 0) own_.erase(std::find(own_.begin(), own_.end(), slot));
  if (last_slot_ == slot) last_stream_ = nullptr;
  if (stream.capturing) {
    stream.capturing = false;
    --capturing_;
  }
  stream.used = false;
  stream.handle = nullptr;
  stream.thread = 0;
  retired_.push_back(slot);
}

void StreamTable::retire_ended_threads() noexcept {
  for (std::size_t i = 0; i < own_.size();) {
    const StreamSlot slot = own_[i];
    if (has_ended(streams_[slot]->thread)) {
      retire(slot);
    } else {
      ++i;
    }
  }
  look_at_own_ = 2 * own_.size() + 16;
}

// A slot is used again only when the work of its former stream is over: uses of it are asked for by number.
StreamSlot StreamTable::take_retired() noexcept {
  constexpr std::size_t kLooks = 4;
  const std::size_t looks = full_ ? retired_.size() : std::min(kLooks, retired_.size());
  for (std::size_t i = 0; i < looks; ++i) {
    // The one that waits longest first.
    const StreamSlot slot = retired_.front();
    retired_.erase(retired_.begin());
    if (is_use_over({slot, streams_[slot]->position}, true)) {
      streams_[slot]->completed = streams_[slot]->position;
      return slot;
    }
    retired_.push_back(slot);
  }
  return kNone;
}

bool StreamTable::add_needs(StreamSlot slot, const Release& release, UseSet* needs) noexcept {
  bool none = true;
  const auto add = [&](StreamUse use) {
    if (is_satisfied(slot, use)) return;
    needs->add(use);
    none = false;
  };
  for (std::uint32_t i = 0; i < release.count; ++i) add(release.uses[i]);
  if (release.epoch > over_epoch_ && streams_[slot]->behind_cut != cut_) [[unlikely]] {
    needs->add_everything();
    none = false;
  }
  return none;
}

bool StreamTable::is_use_over(StreamUse use, bool ask) noexcept {
  Stream& stream = *streams_[use.slot];
  if (use.position <= stream.completed) return true;
  if (!ask) return false;
  const OwnEvent* const event = event_after(stream, use.position);
  if (event == nullptr) {
    // So that there is an answer when it is asked for again.
    stream.wants_event = wants_events_ = true;
    return false;
  }
  if (driver_.event_query(event->handle) != CUDA_SUCCESS) return false;
  stream.completed = std::max(stream.completed, event->position);
  return true;
}

bool StreamTable::is_over(const Release& release, bool ask) noexcept {
  bool over = true;
  for (std::uint32_t i = 0; i < release.count; ++i) {
    look_at(release.uses[i], ask, &over);
    if (!over && !release.everything()) return false;
  }
  return is_epoch_over(release.epoch, ask) && over;
}

// When one is not over no other need be asked, but for an event, so that all have one at the next look.
void StreamTable::look_at(StreamUse use, bool ask, bool* over) noexcept {
  if (!*over && (!ask || event_after(*streams_[use.slot], use.position) != nullptr)) return;
  *over = is_use_over(use, ask) && *over;
}

// Work goes on: were all that is queued looked at each time, there might never be a moment at which it is over. So one
// epoch's end is looked at until it is, and then the next one's.
bool StreamTable::is_epoch_over(std::uint64_t epoch, bool ask) noexcept {
  while (epoch > over_epoch_) {
    if (looked_at_epoch_ == 0) {
      looked_at_epoch_ = end_use_epoch();
      for (const auto& stream : streams_) stream->epoch_end = stream->position;
    }
    bool over = true;
    for (StreamSlot slot = 0; slot < streams_.size(); ++slot) look_at({slot, streams_[slot]->epoch_end}, ask, &over);
    if (!over) return false;
    over_epoch_ = std::exchange(looked_at_epoch_, 0);
  }
  return true;
}

bool StreamTable::is_queued(const Release& release) const noexcept {
  for (std::uint32_t i = 0; i < release.count; ++i) {
    const StreamUse use = release.uses[i];
    const auto slot = static_cast<StreamSlot>(use.slot);
    if (use.position > streams_[slot]->completed && use.position > covered(slot)) return false;
  }
  return true;
}

bool StreamTable::may_be_held_up() noexcept {
  if (!any_held_up_) [[likely]]
    return false;
  any_held_up_ = false;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    if (!is_use_over({slot, streams_[slot]->held_up}, true)) any_held_up_ = true;
  }
  return any_held_up_;
}

void StreamTable::created(CUstream handle) noexcept {
  // A stream of that name that is still there is gone: its end was not seen.
  const auto known = slots_.find({handle, 0});
  if (known != slots_.end()) retire(known->second);
}

void StreamTable::await_calls(ArenaLock& lock, const Stream& stream) noexcept {
  constexpr int kPatience = 100'000;
  for (int i = 0; stream.pins != 0 && i < kPatience; ++i) {
    const Unlocked unlocked(lock);
    sched_yield();
  }
}

void StreamTable::destroyed(ArenaLock& lock, CUstream handle) noexcept {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) return;
  const auto known = slots_.find({handle, 0});
  if (known == slots_.end()) return;
  const StreamSlot slot = known->second;
  Stream& stream = *streams_[slot];
  // Uses of this stream may still be asked about: they are served by an event recorded now.
  if (lacks_event(stream, stream.position) && !record(lock, slot)) finish_all(lock);
  await_calls(lock, stream);
  if (stream.used && stream.handle == handle) retire(slot);
}

void StreamTable::capture_begins(ArenaLock& lock, CUstream handle) noexcept {
  const StreamSlot slot = slot_of({handle, false});
  Stream& stream = *streams_[slot];
  // Nothing can be recorded on it from now on, and there may be threads that wait for what was queued before.
  if (lacks_event(stream, stream.position)) record(lock, slot);
  if (!stream.capturing) {
    stream.capturing = true;
    stream.captured_from = stream.position;
    ++capturing_;
  }
  // An event that came into the capture would spoil it, and stand for nothing.
  await_calls(lock, stream);
}

void StreamTable::capture_ended(CUstream handle) noexcept {
  Stream& stream = *streams_[slot_of({handle, false})];
  if (stream.capturing) {
    stream.capturing = false;
    --capturing_;
  }
}

HostWait StreamTable::begin_wait_for_context() const noexcept {
  HostWait wait;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    const Stream& stream = *streams_[slot];
    if (stream.position > stream.completed) wait.uses.append({slot, covered(slot)});
  }
  return wait;
}

HostWait StreamTable::begin_wait_for_stream(StreamName name) noexcept {
  HostWait wait;
  const StreamSlot slot = slot_of(name);
  if (slot != kOverflowSlot) wait.uses.append({slot, covered(slot)});
  return wait;
}

HostWait StreamTable::begin_wait_for_own(StreamName name) noexcept {
  HostWait wait;
  const StreamSlot slot = slot_of(name);
  if (slot != kOverflowSlot) wait.uses.append({slot, covered(slot, true)});
  return wait;
}

void StreamTable::completed(const HostWait& wait) noexcept {
  if (wait.event != nullptr) {
    const ProgramEvent* const event = find_event(wait.event);
    if (event == nullptr || event->version != wait.version) return;
  }
  for (const StreamUse use : wait.uses.uses()) {
    // The table may have been forgotten since.
    if (use.slot >= streams_.size()) continue;
    Stream& stream = *streams_[use.slot];
    if (use.position > stream.position) continue;
    stream.completed = std::max<std::uint64_t>(stream.completed, use.position);
  }
}

bool StreamTable::is_behind_free(StreamName name) noexcept {
  const StreamSlot slot = slot_of(name);
  const Stream& stream = *streams_[slot];
  return slot != kOverflowSlot && stream.position != 0 && stream.freed_at == stream.position;
}

void StreamTable::forget() noexcept {
  last_stream_ = nullptr;
  last_slot_ = kNone;
  last_ = {};
  table_ = ++g_tables;
  ++reuses_;
  active_ = 0;
  capturing_ = 0;
  blocking_ = any_visible_ = any_held_up_ = wants_events_ = full_ = false;
  barrier_ = cut_ = legacy_orders_ = looked_at_epoch_ = 0;
  behind_barrier_ = {};
  for (const auto& stream : streams_) {
    while (stream->ring.size() != 0) drop(stream->ring.take_first());
    const std::uint32_t pins = stream->pins;
    const CUstream handle = stream.get() == streams_[kLegacySlot].get() ? CU_STREAM_LEGACY : nullptr;
    *stream = Stream();
    stream->pins = pins;
    stream->handle = handle;
  }
  for (const StreamSlot slot : {kLegacySlot, kOverflowSlot}) streams_[slot]->used = true;
  // The events are gone with the context; one that a thread still calls the driver with is deleted by it.
  for (OwnEvent* const event : spare_) delete event;
  spare_.clear();
  slots_.clear();
  own_.clear();
  retired_.clear();
  for (StreamSlot slot = kFirstSlot; slot < streams_.size(); ++slot) retired_.push_back(slot);
  unfolded_.clear();
  program_events_.clear();
}

}  // namespace memopt::agent
