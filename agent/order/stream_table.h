// The streams of a context by slot, how far each has got, and the events by which one is put behind another.
//
// Release events are recorded when a block is freed, on every stream that used it, as soon as the program has more than
// one stream: later the stream may be gone, capturing, or waiting for the very stream that would wait for it. A wait is
// issued only on an event that has been recorded; one event serves all uses before it.
//
// **The free as a barrier.** A plain cuMemFree of the driver's waits for all work of the context, and programs rely on
// that: what is queued afterwards, on any stream, sees what was queued before. Ours waits only for what the host can
// see without asking (host_visible). It raises a barrier at the positions that all streams had when it was called: the
// next operation on each stream is put behind what was queued on the others before; events and streams of which the
// host asks whether they are complete are waited for if nothing has happened to them since (is_behind_free). What other
// threads queue before the free returns is not held up by it, as it is not natively: a host function that is waited for
// may be waiting for them.
//
// Guarded by the arena's lock. Functions that take the lock as an argument give it back while they call the driver
// (arena_lock.h); all others make no driver call that can wait, and none at all in the steady state of a program with
// one stream.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "agent/order/arena_lock.h"
#include "agent/order/event_ring.h"
#include "agent/order/in_flight.h"
#include "agent/order/ownership.h"
#include "agent/order/streams.h"
#include "agent/order/use_set.h"
#include "agent/process/driver.h"

namespace memopt::agent {

// What ordering has cost so far.
struct OrderCounts {
  std::uint64_t waits = 0;
  std::uint64_t host_waits = 0;  // the host thread waited for the device
};

// What will be complete when the host has waited (or has asked, and was told that it is): known before the driver's
// call, believed after its success.
struct HostWait {
  UseSet uses;
  CUevent event = nullptr;  // what is waited for; only if it was not recorded anew meanwhile
  std::uint64_t version = 0;
};

// An event of the program's that is being recorded: its place, known before the driver's call.
struct EventRecord {
  CUevent event = nullptr;
  StreamUse place;
  std::uint64_t version = 0;
};

// A stream that is being made to wait for an event of the program's.
struct EventWait {
  StreamSlot slot = kOverflowSlot;
  CUevent event = nullptr;  // null: nothing is known of it
  StreamUse place;
  std::uint64_t version = 0;
};

class StreamTable {
 public:
  explicit StreamTable(const Driver& driver);
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;
  ~StreamTable();

  // The context whose streams these are, whichever is current when the driver is called.
  void set_context(CUcontext context) { context_ = context; }

  StreamSlot slot_of(StreamName name) noexcept { return is_last(name) ? last_slot_ : look_up(name); }

  // Announces an operation (in_flight.h).
  StreamUse begin(StreamName name) noexcept {
    const StreamSlot slot = slot_of(name);
    return begin_on(slot, *streams_[slot]);
  }
  // Likewise; what it must be behind of the plain frees so far is added to `needs` (add_barrier_needs).
  [[gnu::always_inline]] StreamUse begin(StreamName name, UseSet* needs) noexcept {
    const bool is_last_one = is_last(name);
    const StreamSlot slot = is_last_one ? last_slot_ : look_up(name);
    Stream& stream = is_last_one ? *last_stream_ : *streams_[slot];
    const StreamUse use = begin_on(slot, stream);
    if (stream.behind_barrier != barrier_) [[unlikely]]
      look_at_barrier(slot, needs);
    return use;
  }

  std::uint64_t position(StreamSlot slot) const { return streams_[slot]->position; }
  bool one_stream() const { return active_ <= 1; }
  // What is done on the legacy stream comes between what blocking streams did before and what they do next. Natively an
  // allocation in the order of a stream is done there; ours is no work of the driver's, so that it leaves an event
  // where something may come to be ordered by it: on the legacy stream, and on a blocking one with work on the legacy
  // stream before it. To be called when the allocation, at `use`, counts as queued.
  void order_by_legacy(ArenaLock& lock, StreamUse use) noexcept {
    if (blocking_ && active_ > 1) [[unlikely]]
      stand_in_order(lock, static_cast<StreamSlot>(use.slot));
  }

  // What an operation on `slot` must be behind, as far as it is not yet, is added to `needs`; true if that is nothing.
  bool add_needs(StreamSlot slot, const Release& release, UseSet* needs) noexcept;
  // The number of the last plain free's barrier, for is_behind_barrier() when what add_barrier_needs() gave is waited
  // for.
  std::uint64_t barrier() const { return barrier_; }
  void is_behind_barrier(StreamSlot slot, std::uint64_t barrier) noexcept {
    streams_[slot]->behind_barrier = std::max(streams_[slot]->behind_barrier, barrier);
  }
  // Likewise for the plain frees so far.
  bool add_barrier_needs(StreamSlot slot, UseSet* needs) noexcept {
    return streams_[slot]->behind_barrier == barrier_ || look_at_barrier(slot, needs);
  }
  // Puts work that is queued on `slot` from now on behind all of `needs`; where that can't be done by an event, the
  // host waits.
  void wait(ArenaLock& lock, StreamSlot slot, const UseSet& needs) noexcept;
  void wait(ArenaLock& lock, StreamSlot slot, const Release& release) noexcept;

  // The uses of `release` get events, where they need some.
  bool needs_events(const Release& release) const noexcept;
  void record_events(ArenaLock& lock, Release& release) noexcept;
  // Bytes are released, or taken, whose last uses are too many to tell (Release::epoch): an operation that needs
  // them to be over needs what is queued now.
  void cut() noexcept { ++cut_; }
  // The stream gets one, if there is work on it that none stands for: before something that may hold it up for as long
  // as the host pleases, which bytes that were used before should not have to wait for.
  void leave_event(ArenaLock& lock, StreamName name) noexcept;

  // Is it over, as far as is known? `ask`: the driver is asked, too; where there is no event to ask for, one is wanted.
  bool is_over(const Release& release, bool ask) noexcept;
  bool wants_events() const { return wants_events_; }
  void record_wanted(ArenaLock& lock) noexcept;

  // The host waits until it is over; the driver's code.
  CUresult finish(ArenaLock& lock, const Release& release) noexcept;
  CUresult finish_all(ArenaLock& lock) noexcept;
  // Too many streams at once: the table has no room for another before work on others is known to be over.
  bool is_full() const { return full_; }

  // Several threads queue on the stream just now, and what one of them has only announced has others' queued work
  // behind it: a position does not tell what is queued.
  bool is_mixed(StreamSlot slot) const noexcept { return reach(slot).mixed; }

  // A plain free. begin_free() says what is queued when it is called, seen or not: the last uses of the bytes. Where
  // that is too many streams for a release, or not told by positions, the free needs fold(): a stream of ours waits for
  // all of them, and stands for them from then on. Where many threads free, it needs finish_all(): the host waits, as
  // it does natively. end_free(), when what the host can see of it is over: from now on it is a barrier.
  struct Free {
    std::uint64_t number = 0;
    bool needs_fold = false;
    bool needs_wait = false;
    UseSet queued;
  };
  Free begin_free(Release* uses) noexcept;
  // The whole of it for a program with one stream, which needs no more than a note; false, and nothing has changed, if
  // there is more to it.
  bool free_at_once(Release* uses) noexcept {
    if (active_ > 1 || any_visible_ || unfolded_.size() > 1 || streams_[kFoldSlot]->used) [[unlikely]]
      return false;
    *uses = {};
    if (!unfolded_.empty()) {
      const StreamSlot slot = unfolded_.front();
      Stream& stream = *streams_[slot];
      const Reach queued = reach(slot);
      if (queued.mixed) [[unlikely]]
        return false;
      if (queued.whole > stream.completed) {
        uses->add(StreamUse{slot, queued.whole});
        stream.freed_at = queued.whole;
      }
      stream.behind_barrier = barrier_ + 1;
    }
    last_free_ = ++frees_begun_;
    ++barrier_;
    behind_barrier_ = *uses;
    return true;
  }
  // The last uses of bytes that are freed in the order of a stream, by an operation of its own there. The stream is
  // behind the plain frees of before, though nothing on it may have waited for them yet.
  Release release_in_order(StreamUse free) const noexcept {
    Release uses;
    uses.add(free);
    if (streams_[free.slot]->behind_barrier != barrier_) [[unlikely]]
      uses.add(behind_barrier_);
    return uses;
  }
  // A release that positions don't tell, of a free in the order of its stream.
  Free mixed_free(const Release& uses) noexcept;
  void fold(ArenaLock& lock, const Free& free, Release* uses) noexcept;
  void end_free(const Free& free, const Release& uses) noexcept;
  // Work whose effect the host can see without asking (a copy to the host, a host function, a kernel that was given
  // page-locked memory): a plain free waits for it, as nothing later shows that the program looks.
  // `held_up`: it may itself wait for a thread of the program.
  void host_visible(StreamUse use, bool held_up) noexcept {
    streams_[use.slot]->visible = use.position;
    any_visible_ = true;
    if (!held_up) return;
    streams_[use.slot]->held_up = use.position;
    any_held_up_ = true;
  }
  bool has_visible() const { return any_visible_; }
  CUresult finish_host_visible(ArenaLock& lock) noexcept;

  // Copies of ours (kOutSlot, kInSlot). ---------------------------------------------------------------------------
  // The stream; null: the driver makes none.
  CUstream own_stream(StreamSlot slot) noexcept { return make_own_stream(slot) ? streams_[slot]->handle : nullptr; }
  // A copy has been queued there: after the driver's call, so that no event which stands for it comes before it. The
  // uses that the copy is to be behind are waited for before it is queued (wait).
  StreamUse queued_on_own(StreamSlot slot) noexcept { return {slot, ++streams_[slot]->position}; }
  // An event on the stream, of ours or of the program's, which stands for what was queued there so far.
  void leave_event(ArenaLock& lock, StreamSlot slot) noexcept {
    if (lacks_event(*streams_[slot], streams_[slot]->position)) record(lock, slot);
  }
  // Has what the release names been queued for certain, and not only announced by a thread? Not to be asked of one that
  // is everything.
  bool is_queued(const Release& release) const noexcept;
  // Is there, as far as is known, work that may wait for a thread of the program: a host function, a graph, a kernel
  // that was given page-locked memory? A thread that waits for the device then may wait for itself.
  bool may_be_held_up() noexcept;
  // As finish(), but where something may be held up, the driver is asked for a while and no more:
  // CUDA_ERROR_NOT_READY then.
  CUresult finish_or_give_up(ArenaLock& lock, const Release& release) noexcept;

  void created(CUstream stream) noexcept;
  void destroyed(ArenaLock& lock, CUstream stream) noexcept;
  void capture_begins(ArenaLock& lock, CUstream stream) noexcept;
  void capture_ended(CUstream stream) noexcept;
  bool capturing() const { return capturing_ != 0; }
  bool is_capturing(StreamSlot slot) const { return streams_[slot]->capturing; }

  HostWait begin_wait_for_context() const noexcept;
  HostWait begin_wait_for_stream(StreamName name) noexcept;
  // The calling thread's own operation, which it has announced, and what is before it: a copy that the host waits for.
  HostWait begin_wait_for_own(StreamName name) noexcept;
  HostWait begin_wait_for_event(CUevent event) const noexcept;
  void completed(const HostWait& wait) noexcept;

  // Before the driver's call, and after it. `external`: the record is a node of a graph, which records the
  // event whenever the graph runs.
  EventRecord begin_event_record(CUevent event, StreamName name) noexcept;
  void event_recorded(const EventRecord& record, bool succeeded) noexcept;
  void event_in_graph(CUevent event, bool external) noexcept;
  EventWait begin_event_wait(StreamName name, CUevent event) noexcept;
  void event_waited(const EventWait& wait) noexcept;
  void event_destroyed(CUevent event) noexcept;
  // A graph is launched, which may record any event.
  void forget_events() noexcept;

  // Has the program freed a block since the event was recorded, or since anything was queued on the stream? Then
  // natively it would be complete.
  bool is_behind_free(CUevent event) const noexcept;
  bool is_behind_free(StreamName name) noexcept;

  // The context is gone, or the process was forked: nothing is known any more, and nothing is given back to the driver.
  void forget() noexcept;

  const OrderCounts& counts() const { return counts_; }
  // How often a slot came to mean another stream.
  std::uint64_t reuses() const { return reuses_; }
  std::size_t slots() const { return streams_.size(); }  // in the table, free ones included

 private:
  static constexpr StreamSlot kNone = ~StreamSlot{0};
  static constexpr std::uint64_t kFreesTogether = 256;
  static constexpr std::uint32_t kManyThreads = 5;

  // An event of ours. While `pins` is not 0 a thread calls the driver with it, without the lock.
  struct OwnEvent {
    CUevent handle = nullptr;
    std::uint64_t table = 0;  // of which it is
    std::uint64_t position = 0;
    std::uint32_t pins = 0;
    bool dropped = false;
  };
  struct Stream {
    CUstream handle = nullptr;
    ThreadNumber thread = 0;  // of a per-thread default stream: whose
    bool used = false;
    bool capturing = false;
    bool blocking = false;  // is ordered by the legacy stream
    mutable Announcers announcers;
    bool wants_event = false;
    bool unfolded = false;             // is in `unfolded_`
    std::uint32_t pins = 0;            // threads that call the driver with it, without the lock
    std::uint64_t position = 0;        // of the last operation begun
    std::uint64_t captured_from = 0;   // `capturing`: what comes behind is not queued, but captured
    std::uint64_t completed = 0;       // the host knows that all up to here is over
    std::uint64_t visible = 0;         // last work whose effect the host can see
    std::uint64_t held_up = 0;         // last work that may wait for a thread of the program
    std::uint64_t freed_at = 0;        // position at the last barrier: other streams go on behind it
    std::uint64_t behind_barrier = 0;  // the last barrier that it is behind
    std::uint64_t behind_cut = 0;      // that it is behind all of
    std::uint64_t epoch_end = 0;       // position at the end of the epoch that is looked at
    std::uint64_t behind_legacy = 0;   // position of the legacy stream, and its orders, that an event on this one
    std::uint64_t behind_orders = 0;   // has been put behind
    EventRing<OwnEvent> ring;
    std::uint32_t look_in = 0;          // so many more events, until one is asked for again
    std::vector<std::uint64_t> behind;  // per slot: position of it that this one waits for already
  };
  struct Key {
    CUstream handle;
    ThreadNumber thread;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return (reinterpret_cast<std::uintptr_t>(key.handle) ^ key.thread << 20) * 0x9e3779b97f4a7c15u >> 13;
    }
  };
  // What the program's event stands for; `known` false: nothing, at the moment.
  struct ProgramEvent {
    StreamUse place;
    bool known = false;
    bool external = false;        // a graph records it whenever it runs
    std::uint32_t recording = 0;  // threads that record it now
    std::uint64_t version = 0;    // of the record
    std::uint64_t frees = 0;      // begun when it was recorded
  };

  // What is queued on it for certain; and up to where all is.
  Reach reach(StreamSlot slot, bool with_own = false) const noexcept {
    const Stream& stream = *streams_[slot];
    return in_flight_reach(stream.announcers, slot, stream.position, with_own);
  }
  std::uint64_t covered(StreamSlot slot, bool with_own = false) const noexcept { return reach(slot, with_own).whole; }
  bool is_satisfied(StreamSlot slot, StreamUse use) const noexcept {
    if (slot == use.slot && slot != kOverflowSlot) return true;
    if (use.position <= streams_[use.slot]->completed) return true;
    const std::vector<std::uint64_t>& behind = streams_[slot]->behind;
    return use.slot < behind.size() && use.position <= behind[use.slot];
  }

  bool is_last(StreamName name) const noexcept {
    return name.handle == last_.handle && name.per_thread == last_.per_thread && last_stream_ != nullptr;
  }
  [[gnu::always_inline]] StreamUse begin_on(StreamSlot slot, Stream& stream) noexcept {
    if (stream.position == 0) [[unlikely]]
      ++active_;
    if (!stream.unfolded) [[unlikely]]
      note_unfolded(slot);
    announce(slot, ++stream.position);
    stream.announcers.add(slot);
    return {slot, stream.position};
  }
  StreamSlot look_up(StreamName name) noexcept;
  // Remembers the stream that was asked for last: most programs queue several operations on one.
  StreamSlot remember(StreamName name, StreamSlot slot) noexcept {
    last_ = name;
    last_stream_ = streams_[slot].get();
    return last_slot_ = slot;
  }
  StreamSlot make_slot(const Key& key) noexcept;
  bool add_slot() noexcept;
  void retire(StreamSlot slot) noexcept;
  void retire_ended_threads() noexcept;
  StreamSlot take_retired() noexcept;
  bool look_at_barrier(StreamSlot slot, UseSet* needs) noexcept;
  void note_unfolded(StreamSlot slot) noexcept;
  void stand_in_order(ArenaLock& lock, StreamSlot slot) noexcept;
  void note_order(StreamSlot slot) noexcept {
    if (slot == kLegacySlot) ++legacy_orders_;
  }
  bool make_own_stream(StreamSlot slot) noexcept;
  std::size_t gather_unfolded(UseSet* queued, Release* few, bool* mixed) noexcept;
  bool many_threads_free() noexcept;
  void wait_for_all(ArenaLock& lock, StreamSlot slot) noexcept;
  bool create_stream(CUstream* stream) noexcept;
  bool is_blocking(const Key& key) const noexcept;

  bool captures(const Stream& stream) const noexcept;
  // Another thread may be about to record or wait on it, on behalf of a block that it frees or uses: until it has.
  // Gives the lock back; not for ever, as the driver may hold such a call up.
  void await_calls(ArenaLock& lock, const Stream& stream) noexcept;
  bool usable_here(const Stream& stream) const noexcept;
  CUstream name_of(const Stream& stream) const noexcept;
  OwnEvent* event_after(const Stream& stream, std::uint64_t position) const noexcept;
  bool lacks_event(const Stream& stream, std::uint64_t position) const noexcept;
  OwnEvent* take_event() noexcept;
  void keep(Stream& stream, OwnEvent* event) noexcept;
  void make_room(Stream& stream) noexcept;
  void drop(OwnEvent* event) noexcept;
  void unpin(OwnEvent* event) noexcept;
  // Another thread's default stream has no name here. The legacy stream's event stands for it, and holds up what
  // blocking streams do next: where work that the host can see is pending, which may wait for the host, only if there
  // is no other way but to wait here.
  enum class ByLegacy : std::uint8_t { kIfNothingIsVisible, kAlways };
  // `made`: the event, for the caller to unpin.
  bool record(ArenaLock& lock, StreamSlot slot, OwnEvent** made = nullptr,
              ByLegacy by_legacy = ByLegacy::kIfNothingIsVisible) noexcept;
  void wait_for(ArenaLock& lock, StreamSlot slot, StreamUse use) noexcept;
  void wait_for_queued(ArenaLock& lock, StreamSlot slot, StreamUse use, ByLegacy by_legacy) noexcept;
  bool make_wait(ArenaLock& lock, StreamSlot slot, StreamSlot behind, OwnEvent* event) noexcept;
  CUresult finish_use(ArenaLock& lock, StreamUse use) noexcept;
  bool is_use_over(StreamUse use, bool ask) noexcept;
  void look_at(StreamUse use, bool ask, bool* over) noexcept;
  bool is_epoch_over(std::uint64_t epoch, bool ask) noexcept;
  const ProgramEvent* find_event(CUevent event) const noexcept;

  const Driver& driver_;
  CUcontext context_ = nullptr;
  StreamName last_{};
  Stream* last_stream_ = nullptr;  // null: none is remembered
  StreamSlot last_slot_ = kNone;
  std::uint64_t table_ = 1;   // its number, for what threads remember of it
  std::uint32_t active_ = 0;  // slots with operations
  std::uint32_t capturing_ = 0;
  bool blocking_ = false;  // there have been streams that the legacy stream orders
  bool any_visible_ = false;
  bool any_held_up_ = false;
  bool wants_events_ = false;
  bool full_ = false;
  std::uint64_t cut_ = 0;  // number of the last release of everything
  // Epochs of such releases: the last one that is known to be over, and the one that is looked at, if any.
  std::uint64_t over_epoch_ = 0;
  std::uint64_t looked_at_epoch_ = 0;
  // Events recorded on the legacy stream and waits that were put there: they order blocking streams, and have no
  // positions.
  std::uint64_t legacy_orders_ = 0;
  std::uint64_t barrier_ = 0;  // its number
  Release behind_barrier_;     // what it stands for
  std::uint64_t frees_begun_ = 0;
  // How many threads freed in this run of kFreesTogether frees, and in the one before it.
  std::uint64_t run_ = 0;
  std::uint32_t threads_now_ = 0;
  std::uint32_t threads_before_ = 0;
  std::uint64_t last_free_ = 0;  // the last of them that has ended
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unordered_map<Key, StreamSlot, KeyHash> slots_;
  std::vector<StreamSlot> own_;       // per-thread default streams
  std::size_t look_at_own_ = 16;      // when there are so many, ended threads are looked for
  std::vector<StreamSlot> unfolded_;  // with work that the stream of ours does not stand for
  std::vector<StreamSlot> retired_;   // of streams that are gone, to be used again once their work is over
  std::vector<OwnEvent*> spare_;
  std::unordered_map<CUevent, ProgramEvent> program_events_;
  std::uint64_t version_ = 0;
  std::uint64_t reuses_ = 0;
  OrderCounts counts_{};
};

}  // namespace memopt::agent
