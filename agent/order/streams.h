// The streams that the program uses, by number.
//
// A stream's *position* counts the operations that were queued on it. A use of a block is (slot, position). A use is
// over when the host has seen the stream complete that position; a stream is behind a use if an event recorded on the
// used stream at or after that position is waited for by it.
#pragma once

#include <cuda.h>

#include <bit>
#include <cstdint>

namespace memopt::agent {

// Slot 0 is the legacy default stream, slot 1 stands for all that found no place, slot 2 is a stream of ours on which
// what many streams do comes together (StreamTable::fold), slots 3 and 4 are streams of ours on which blocks are copied
// to the host and back.
using StreamSlot = std::uint32_t;
inline constexpr StreamSlot kLegacySlot = 0;
inline constexpr StreamSlot kOverflowSlot = 1;
inline constexpr StreamSlot kFoldSlot = 2;
inline constexpr StreamSlot kOutSlot = 3;
inline constexpr StreamSlot kInSlot = 4;
inline constexpr StreamSlot kFirstSlot = 5;
// More streams at once than that share the overflow slot, for which the host waits.
inline constexpr StreamSlot kMostSlots = 4096;

// One word, since blocks and spans keep several of them.
struct StreamUse {
  constexpr StreamUse() = default;
  constexpr StreamUse(StreamSlot its_slot, std::uint64_t its_position)
      : slot(its_slot & 0xffffu), position(its_position & 0xffffffffffffu) {}

  std::uint64_t slot : 16 = 0;
  std::uint64_t position : 48 = 0;
};
static_assert(sizeof(StreamUse) == 8);

inline bool are_of_one_slot(StreamUse one, StreamUse other) noexcept {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint64_t>(one) ^ std::bit_cast<std::uint64_t>(other)) == 0;
}

// Of two uses of one slot. The position is the word's higher part.
inline StreamUse later_of(StreamUse one, StreamUse other) noexcept {
  return std::bit_cast<std::uint64_t>(one) < std::bit_cast<std::uint64_t>(other) ? other : one;
}

// A stream as the program names it. `per_thread`: the call was one of those (_ptsz) for which a null stream means the
// calling thread's own default stream.
struct StreamName {
  CUstream handle = nullptr;
  bool per_thread = false;
};

inline bool is_own_default(StreamName name) noexcept {
  return name.handle == CU_STREAM_PER_THREAD || (name.handle == nullptr && name.per_thread);
}
inline bool is_legacy(StreamName name) noexcept {
  return !is_own_default(name) && (name.handle == nullptr || name.handle == CU_STREAM_LEGACY);
}

}  // namespace memopt::agent
