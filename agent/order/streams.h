// The streams that the program uses, by number, and what is known of their order: how far each has got, which is behind
// which. All functions are called with the arena's lock held (arena.h) unless said otherwise.
//
// A stream's *position* counts the operations that were queued on it and touch blocks of ours. A use of a block is
// (slot, position). A use is over when the host has seen the stream complete that position; a stream is behind a use
// if an event recorded on the used stream at or after that position is waited for by it.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace memopt::agent {

// Numbers of streams are small; slot 0 is the legacy default stream, the last one stands for all that found no place.
using StreamSlot = std::uint32_t;
inline constexpr StreamSlot kLegacySlot = 0;
inline constexpr StreamSlot kOverflowSlot = 63;
inline constexpr std::uint32_t kStreamSlots = 64;

// One word, since blocks and spans keep several of them.
struct StreamUse {
  constexpr StreamUse() = default;
  constexpr StreamUse(StreamSlot its_slot, std::uint64_t its_position)
      : slot(its_slot & 0xffu), position(its_position & 0xffffffffffffffu) {}

  std::uint64_t slot : 8 = 0;
  std::uint64_t position : 56 = 0;
};
static_assert(sizeof(StreamUse) == 8);

// A stream as the program names it. `per_thread`: the call was one of those (_ptsz) for which a null stream means the
// calling thread's own default stream.
struct StreamName {
  CUstream handle = nullptr;
  bool per_thread = false;
};

// What the hooks tell. Each takes the arena's lock itself.
void note_stream_created(CUstream stream) noexcept;
void note_stream_destroyed(CUstream stream) noexcept;  // before the driver's call: releases get their events
void note_capture_begins(CUstream stream) noexcept;    // before the driver's call
void note_capture_ended(CUstream stream) noexcept;
// The host has waited for (or has asked, and found complete) all work of a stream, of the context, or of an event.
// `begin` before the driver's call tells what will be complete; `done` after its success.
struct HostWait {
  std::uint64_t scope = 0;  // 0: nothing is known to be complete, 1: the context, 2: one slot
  StreamSlot slot = 0;
  std::array<std::uint64_t, kStreamSlots> positions{};
};
HostWait begin_host_wait_for_context() noexcept;
HostWait begin_host_wait_for_stream(StreamName stream) noexcept;
HostWait begin_host_wait_for_event(CUevent event) noexcept;
void host_wait_done(const HostWait& wait) noexcept;
void note_event_recorded(CUevent event, StreamName stream) noexcept;  // after the driver's success
void note_event_destroyed(CUevent event) noexcept;
void note_event_waited(StreamName stream, CUevent event) noexcept;  // the program makes the stream wait

}  // namespace memopt::agent
