// The plain free as a barrier.
#include <algorithm>

#include "agent/order/captures.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

// Room for it was made with the slot.
void StreamTable::note_unfolded(StreamSlot slot) noexcept {
  streams_[slot]->unfolded = true;
  unfolded_.push_back(slot);
}

// What is queued and not known to be over, on all streams; those that are folded are one use. Returns how many uses; as
// many of them as a release has room for are in `few`.
std::size_t StreamTable::gather_unfolded(UseSet* queued, Release* few, bool* mixed) noexcept {
  std::size_t kept = 0;
  std::size_t count = 0;
  const auto add = [&](StreamUse use) {
    queued->append(use);
    if (++count <= Release::kUses) few->add(use);
  };
  for (const StreamSlot slot : unfolded_) {
    Stream& stream = *streams_[slot];
    if (stream.position <= stream.completed || is_satisfied(kFoldSlot, {slot, stream.position})) {
      stream.unfolded = false;
      continue;
    }
    unfolded_[kept++] = slot;
    // What other threads have announced, and not queued, is none of what comes before.
    const Reach queued_now = reach(slot);
    *mixed = *mixed || queued_now.mixed;
    const StreamUse use{slot, queued_now.mixed ? stream.position : queued_now.whole};
    if (use.position > stream.completed) add(use);
  }
  unfolded_.resize(kept);
  const StreamUse folded{kFoldSlot, streams_[kFoldSlot]->position};
  // Asked only where the answer may spare something.
  if (!is_use_over(folded, count <= Release::kUses)) add(folded);
  return count;
}

// With many threads at it the processor is what is short, not the device: a free that waits for nothing would cost an
// event of each stream that was used since the last one, and a wait of each that is used before the next.
bool StreamTable::many_threads_free() noexcept {
  const std::uint64_t run = frees_begun_ / kFreesTogether;
  if (run != run_) {
    threads_before_ = run == run_ + 1 ? threads_now_ : 0;
    threads_now_ = 0;
    run_ = run;
  }
  // Not that of another table's run, nor 0.
  const std::uint64_t number = table_ << 48 | run;
  InFlight& own = in_flight();
  if (own.freed_in != number) {
    own.freed_in = number;
    ++threads_now_;
  }
  return std::max(threads_now_, threads_before_) >= kManyThreads;
}

StreamTable::Free StreamTable::begin_free(Release* uses) noexcept {
  Free free;
  free.number = ++frees_begun_;
  *uses = {};
  const bool many_threads = many_threads_free();
  bool mixed = false;
  const std::size_t count = gather_unfolded(&free.queued, uses, &mixed);
  free.needs_fold = count > Release::kUses || mixed;
  // A wait for the context would spoil a capture.
  free.needs_wait = count != 0 && !one_stream() && many_threads && !captures_are_open();
  return free;
}

StreamTable::Free StreamTable::mixed_free(const Release& uses) noexcept {
  Free free;
  free.needs_fold = true;
  for (std::uint32_t i = 0; i < uses.count; ++i) free.queued.add(uses.uses[i]);
  if (uses.everything()) free.queued.add_everything();
  return free;
}

void StreamTable::wait_for_all(ArenaLock& lock, StreamSlot slot) noexcept {
  const std::uint64_t cut = cut_;
  const std::uint64_t table = table_;
  Free all;
  Release uses;
  bool mixed = false;
  gather_unfolded(&all.queued, &uses, &mixed);
  fold(lock, all, &uses);
  for (std::uint32_t i = 0; i < uses.count; ++i) {
    if (!is_satisfied(slot, uses.uses[i])) wait_for(lock, slot, uses.uses[i]);
  }
  for (const StreamSlot own : {kOutSlot, kInSlot}) {
    const StreamUse copies{own, streams_[own]->position};
    if (!is_satisfied(slot, copies)) wait_for(lock, slot, copies);
  }
  if (table == table_) streams_[slot]->behind_cut = cut;
}

void StreamTable::fold(ArenaLock& lock, const Free& free, Release* uses) noexcept {
  *uses = {};
  // The host waits then, as it does natively.
  if (free.queued.everything() || !make_own_stream(kFoldSlot)) {
    finish_all(lock);
    return;
  }
  for (const StreamUse use : free.queued.uses()) {
    // A plain free may wait, as natively.
    const ByLegacy by_legacy = free.number != 0 ? ByLegacy::kIfNothingIsVisible : ByLegacy::kAlways;
    if (!is_satisfied(kFoldSlot, use)) wait_for_queued(lock, kFoldSlot, use, by_legacy);
  }
  // Other threads may fold, too, and record an event first: it stands for these waits as well.
  const Stream& stream = *streams_[kFoldSlot];
  const StreamUse place{kFoldSlot, stream.position};
  uses->add(place);
  if (lacks_event(stream, place.position) && !record(lock, kFoldSlot)) finish_use(lock, place);
}

void StreamTable::end_free(const Free& free, const Release& uses) noexcept {
  for (const StreamUse use : free.queued.uses()) {
    if (use.slot >= streams_.size()) continue;
    Stream& stream = *streams_[use.slot];
    if (use.position <= stream.position) stream.freed_at = std::max<std::uint64_t>(stream.freed_at, use.position);
  }
  // One that began later stands for what this one does, too.
  if (free.number < last_free_) return;
  last_free_ = free.number;
  behind_barrier_ = uses;
  ++barrier_;
}

bool StreamTable::look_at_barrier(StreamSlot slot, UseSet* needs) noexcept {
  // Only what has been issued counts: another thread's operation on the stream may come first.
  if (!add_needs(slot, behind_barrier_, needs)) return false;
  streams_[slot]->behind_barrier = barrier_;
  return true;
}

bool StreamTable::make_own_stream(StreamSlot slot) noexcept {
  Stream& stream = *streams_[slot];
  if (stream.used) return true;
  if (!create_stream(&stream.handle)) return false;
  stream.used = true;
  return true;
}

}  // namespace memopt::agent
