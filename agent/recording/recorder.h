// Writes what the program does into the calling thread's ring (shm/record.h): one record per operation, numbered over
// all threads. Off until the link has memory for it, and while a plan is followed without deviation.
//
// Any thread, never with the arena's lock held: with MEMOPT_SYNC_PLAN a call may wait for the planner here. A ring that
// is full drops the record; its number is used up, so that the reader sees the hole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "agent/order/streams.h"
#include "shm/record.h"

namespace memopt::agent {

// Is anything to be recorded? One load.
// 0: off. Else bit 0 is set, kRecorderFull if launch parameters are wanted, and above it the number of the recording.
extern std::uint32_t recorder_state;
inline constexpr std::uint32_t kRecorderFull = 2;
inline constexpr std::uint32_t kRecorderNext = 4;
inline bool recording() noexcept { return __atomic_load_n(&recorder_state, __ATOMIC_RELAXED) != 0; }

// `full`: launch parameters too, for recordings. Off again: stop_recording().
void start_recording(bool full) noexcept;
void stop_recording() noexcept;

// The calling thread's number (its lane), given at its first record; kNoLane if it has none (yet, or memory was short).
inline constexpr std::uint32_t kNoLane = ~std::uint32_t{0};
std::uint32_t current_lane() noexcept;
// Gives the thread its lane even if nothing is recorded; may wait a little for shared memory. Not with the arena's
// lock.
void claim_lane() noexcept;

// A stream as records name it: 0 is the legacy default stream.
std::uint64_t stream_number(StreamName stream) noexcept;

// The number of the last record.
std::uint64_t last_sequence() noexcept;

// Each returns the record's sequence number, 0 if nothing was recorded.
std::uint64_t record_malloc(const shm::MallocBody& body, std::uint8_t flags) noexcept;  // fills in body.stack
std::uint64_t record_free(const shm::FreeBody& body, std::uint8_t flags) noexcept;
std::uint64_t record_launch(std::uint32_t function, const shm::LaunchBody& body,
                            std::span<const std::uint64_t> accesses, std::uint8_t flags) noexcept;
std::uint64_t record_copy(shm::CopyKind kind, const shm::CopyBody& body) noexcept;
std::uint64_t record_memset(const shm::MemsetBody& body) noexcept;
std::uint64_t record_state(shm::StateChange change, const shm::StateBody& body) noexcept;
std::uint64_t record_kernel_time(const shm::KernelTimeBody& body, std::uint32_t idle) noexcept;
std::uint64_t record_plain(shm::RecordKind kind, const void* body, std::size_t bytes) noexcept;
template <typename Body>
std::uint64_t record_simple(shm::RecordKind kind,
                            const Body& body) noexcept {  // event, stream, synchronise, host function
  static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) % 8 == 0);
  return record_plain(kind, &body, sizeof(body));
}

// Are launch parameters wanted, too?
inline bool recording_fully() noexcept {
  return (__atomic_load_n(&recorder_state, __ATOMIC_RELAXED) & kRecorderFull) != 0;
}

// A number for the present recording, never 0 while recording: what is written once per recording (names, stacks) is
// written again when it changes.
inline std::uint32_t recording_number() noexcept {
  return __atomic_load_n(&recorder_state, __ATOMIC_RELAXED) / kRecorderNext;
}

// Text or words that others refer to. `prefix` is the fixed body.
std::uint64_t record_named(shm::RecordKind kind, std::uint64_t id, std::string_view text) noexcept;
std::uint64_t record_stack(shm::RecordKind kind, std::uint64_t hash, std::span<const std::uint64_t> frames) noexcept;

// The parameters of the launch with number `launch`: `fill` writes `bytes` of them to a zeroed place.
std::uint64_t record_parameters(std::uint64_t launch, std::size_t bytes, void (*fill)(void* to, const void* context),
                                const void* context) noexcept;

void forget_recorder_after_fork() noexcept;

}  // namespace memopt::agent
