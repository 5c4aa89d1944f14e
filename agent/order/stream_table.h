// The streams of a context by slot, how far each has got, and the events by which one is put behind another.
//
// Release events are recorded when a block is freed, on every stream that used it, as soon as the program has more than
// one stream: later the stream may be gone, capturing, or waiting for the very stream that would wait for it. A wait is
// issued only on an event that has been recorded; one event serves all uses before it.
//
// Not thread-safe: guarded by the arena's lock. Makes driver calls; none in the steady state of a program with one
// stream.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "agent/order/in_flight.h"
#include "agent/order/ownership.h"
#include "agent/order/streams.h"
#include "agent/process/driver.h"

namespace memopt::agent {

// What ordering has cost so far.
struct OrderCounts {
  std::uint64_t waits = 0;
  std::uint64_t host_waits = 0;  // the host thread waited for the device
};

class StreamTable {
 public:
  constexpr explicit StreamTable(const Driver& driver) : driver_(driver) {}
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  StreamSlot slot_of(StreamName name) noexcept {
    if (name.handle == last_.handle && name.per_thread == last_.per_thread && last_slot_ != kNone) [[likely]] {
      if (name.handle != nullptr || !name.per_thread) return last_slot_;
    }
    return look_up(name);
  }

  StreamUse begin(StreamName name) noexcept {
    const StreamSlot slot = slot_of(name);
    Stream& stream = streams_[slot];
    if (stream.position == 0) [[unlikely]]
      first_operation(slot);
    announce(slot, ++stream.position);
    return {slot, stream.position};
  }

  std::uint64_t position(StreamSlot slot) const { return streams_[slot].position; }
  bool one_stream() const { return active_ <= 1; }

  // The uses of `release` get events, where they need some.
  void record_events(Release& release) noexcept;

  // Work that is queued on `slot` from now on is behind `release`.
  void wait(StreamSlot slot, const Release& release) noexcept;

  // Is it over, as far as is known? `ask`: the driver is asked too.
  bool is_over(const Release& release, bool ask) noexcept;

  // The host waits until it is over; false if the driver refused.
  bool finish(const Release& release) noexcept;

  // The work that the host can see (arena.h, host_visible) up to now, and waiting for it.
  void host_visible(StreamUse use) noexcept {
    streams_[use.slot].visible = use.position;
    any_visible_ = true;
  }
  void finish_host_visible() noexcept {
    if (any_visible_) [[unlikely]]
      wait_for_visible();
  }

  void created(CUstream stream) noexcept;
  void destroyed(CUstream stream) noexcept;
  void capture_begins(CUstream stream) noexcept;
  void capture_ended(CUstream stream) noexcept;
  bool capturing() const { return capturing_ != 0; }
  bool is_capturing(StreamSlot slot) const { return streams_[slot].capturing; }

  HostWait begin_wait_for_context() const noexcept;
  HostWait begin_wait_for_stream(StreamName stream) noexcept;
  HostWait begin_wait_for_event(CUevent event) const noexcept;
  void completed(const HostWait& wait) noexcept;

  void event_recorded(CUevent event, StreamName stream) noexcept;
  void event_destroyed(CUevent event) noexcept;
  void event_waited(StreamName stream, CUevent event) noexcept;

  // The context is gone, or the process was forked: nothing is known any more, and nothing is given back to the driver.
  void forget() noexcept;

  const OrderCounts& counts() const { return counts_; }

 private:
  static constexpr StreamSlot kNone = ~StreamSlot{0};
  static constexpr std::uint32_t kEvents = 32;          // of ours, per stream
  static constexpr std::uint32_t kProgramEvents = 256;  // of the program's that are remembered

  struct RecordedEvent {
    CUevent event;
    std::uint64_t position;
  };
  struct Stream {
    CUstream handle = nullptr;
    std::uint64_t thread = 0;  // of a per-thread default stream: whose
    bool used = false;
    bool capturing = false;
    std::uint64_t position = 0;   // of the last operation begun
    std::uint64_t completed = 0;  // the host knows that all up to here is over
    std::uint64_t visible = 0;    // last work whose effect the host can see
    std::uint64_t events = 0;     // recorded so far; the last kEvents of them are in `ring`, at events % kEvents
    std::array<RecordedEvent, kEvents> ring{};
    std::array<std::uint64_t, kStreamSlots> behind{};  // per stream: position of it that this one waits for already
  };
  struct ProgramEvent {
    CUevent event = nullptr;
    StreamSlot slot = 0;
    std::uint64_t position = 0;
  };

  StreamSlot look_up(StreamName name) noexcept;
  bool reusable(StreamSlot slot) noexcept;
  bool captures(const Stream& stream) const noexcept;
  void first_operation(StreamSlot slot) noexcept;
  bool usable_here(const Stream& stream) const noexcept;
  CUstream name_of(const Stream& stream) const noexcept;
  const RecordedEvent* event_after(const Stream& stream, std::uint64_t position) const noexcept;
  bool record(StreamSlot slot) noexcept;
  bool needs_event(StreamUse use) const noexcept;
  void wait_for(StreamSlot slot, StreamUse use) noexcept;
  bool finish_stream(StreamSlot slot, std::uint64_t position) noexcept;
  bool finish_all() noexcept;
  void wait_for_visible() noexcept;
  const ProgramEvent* find_event(CUevent event) const noexcept;

  const Driver& driver_;
  StreamName last_{};
  StreamSlot last_slot_ = kNone;
  std::uint32_t active_ = 0;  // slots with operations
  std::uint32_t capturing_ = 0;
  bool any_visible_ = false;
  std::array<Stream, kStreamSlots> streams_{};
  std::array<ProgramEvent, kProgramEvents> program_events_{};
  OrderCounts counts_{};
};

}  // namespace memopt::agent
