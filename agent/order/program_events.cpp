// Events of the program's: which place in the order of which stream each stands for.
#include <algorithm>
#include <new>

#include "agent/order/stream_table.h"

namespace memopt::agent {

const StreamTable::ProgramEvent* StreamTable::find_event(CUevent event) const noexcept {
  const auto known = program_events_.find(event);
  return known != program_events_.end() ? &known->second : nullptr;
}

EventRecord StreamTable::begin_event_record(CUevent event, StreamName name) noexcept {
  if (event == nullptr) return {};
  const StreamSlot slot = slot_of(name);
  ProgramEvent* known = nullptr;
  try {
    known = &program_events_[event];
  } catch (const std::bad_alloc&) {
    return {};
  }
  // From here on it may stand for either place.
  known->known = false;
  known->version = ++version_;
  ++known->recording;
  return {event, {slot, covered(slot)}, known->version};
}

void StreamTable::event_recorded(const EventRecord& record, bool succeeded) noexcept {
  note_order(static_cast<StreamSlot>(record.place.slot));
  const auto found = program_events_.find(record.event);
  if (record.event == nullptr || found == program_events_.end()) return;
  ProgramEvent& event = found->second;
  if (event.recording != 0) --event.recording;
  // Two threads record it at once: which of them came last is not known.
  if (!succeeded || event.recording != 0 || event.version != record.version || event.external) return;
  if (record.place.slot == kOverflowSlot || streams_[record.place.slot]->capturing) return;
  event.place = record.place;
  event.known = true;
  event.frees = frees_begun_;
}

void StreamTable::event_in_graph(CUevent event, bool external) noexcept {
  try {
    ProgramEvent& known = program_events_[event];
    known.known = false;
    known.external = known.external || external;
    known.version = ++version_;
  } catch (const std::bad_alloc&) {
    // Not in the table: nothing is known of it.
  }
}

EventWait StreamTable::begin_event_wait(StreamName name, CUevent event) noexcept {
  const ProgramEvent* const known = find_event(event);
  EventWait wait;
  wait.slot = slot_of(name);
  if (known == nullptr || !known->known) return wait;
  wait.event = event;
  wait.place = known->place;
  wait.version = known->version;
  return wait;
}

void StreamTable::event_waited(const EventWait& wait) noexcept {
  note_order(wait.slot);
  if (wait.event == nullptr || wait.slot == kOverflowSlot || wait.slot >= streams_.size()) return;
  const ProgramEvent* const known = find_event(wait.event);
  Stream& stream = *streams_[wait.slot];
  if (known == nullptr || known->version != wait.version || stream.capturing) return;
  try {
    if (stream.behind.size() <= wait.place.slot) stream.behind.resize(streams_.size(), 0);
    std::uint64_t& behind = stream.behind[wait.place.slot];
    behind = std::max<std::uint64_t>(behind, wait.place.position);
  } catch (const std::bad_alloc&) {
    // It will be put behind once more.
  }
}

void StreamTable::event_destroyed(CUevent event) noexcept { program_events_.erase(event); }

void StreamTable::forget_events() noexcept {
  for (auto& [handle, event] : program_events_) {
    event.known = false;
    event.version = ++version_;
  }
}

HostWait StreamTable::begin_wait_for_event(CUevent event) const noexcept {
  HostWait wait;
  const ProgramEvent* const known = find_event(event);
  if (known == nullptr || !known->known) return wait;
  wait.event = event;
  wait.version = known->version;
  wait.uses.append(known->place);
  return wait;
}

bool StreamTable::is_behind_free(CUevent event) const noexcept {
  const ProgramEvent* const known = find_event(event);
  return known != nullptr && known->known && known->frees < last_free_;
}

}  // namespace memopt::agent
