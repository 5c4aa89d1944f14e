// How a program's agent and the planner find each other and what they say. docs/formats/wire.md.
//
// The planner (memoptd, one per user) listens on an abstract SOCK_SEQPACKET socket. An agent connects, both check the
// peer's user, and the agent sends kHello with its control segment. Memory travels as sealed memfd beside a message
// (SCM_RIGHTS): F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, and F_SEAL_WRITE too for a plan; preallocated, so that a
// shortage is an error at its creation and never a SIGBUS later. Either side refuses memory without these seals. A
// closed connection ends everything.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shm/record.h"
#include "shm/wait.h"

namespace memopt::shm {

// The planner's abstract socket name: memoptd-<uid>-<wire version>; a second component of the user's choosing
// (MEMOPT_PLANNER_NAME) keeps tests and recordings apart.
inline std::string planner_socket_name(uid_t uid, std::string_view instance) {
  std::string name = "memoptd-" + std::to_string(uid) + "-" + std::to_string(kWireVersion);
  if (!instance.empty()) name.append("-").append(instance);
  return name;
}
inline constexpr std::size_t kMaxInstanceName = 40;

enum class MessageKind : std::uint32_t {
  kHello = 1,      // agent -> planner: HelloBody; descriptor: control segment. The first message.
  kWelcome = 2,    // planner -> agent: no body. The answer to kHello.
  kRefused = 3,    // planner -> agent: text, why; then the planner closes
  kRing = 4,       // agent -> planner: RingBody; descriptor: a ring
  kPlan = 5,       // planner -> agent: PlanBody; descriptor: a plan (plan.h)
  kNote = 6,       // planner -> agent: text for status and log: what it is waiting for, why there is no plan
  kSwapTerms = 7,  // agent -> planner: SwapTermsBody: plans may swap, or not any more. At any time: the last one holds
};

struct MessageHeader {
  std::uint32_t kind;
  std::uint32_t bytes;  // of the body
};
inline constexpr std::size_t kMaxMessageBytes = 4096;  // header and body
inline constexpr std::uint32_t kMaxLanes = 64;         // rings of one program, numbered from 0

struct HelloBody {
  std::uint32_t wire_version;
  std::uint32_t flags;  // kSynchronous, kRecordOnly, kCachingIsOff; above them, wait_of()
  std::int32_t pid;     // as the agent sees itself
  // In which it maps device memory, where it keeps chunks for a plan (shm::PlannedChunk); else 0.
  std::uint32_t chunk_bytes;
  char version[32];   // of memopt, NUL-terminated
  char program[256];  // path, NUL-terminated, cut
};
inline constexpr std::uint32_t kSynchronous = 1;  // the agent waits for Control::processed
inline constexpr std::uint32_t kRecordOnly = 2;   // no plan is wanted
// PyTorch is loaded, and allocates one by one: Control::framework_reserved is wanted.
inline constexpr std::uint32_t kCachingIsOff = 4;
// From this bit of the flags on: how many seconds a synchronous agent waits at most; 0: as many as usually.
inline constexpr std::uint32_t kWaitShift = 16;
constexpr std::uint32_t wait_of(std::uint32_t flags) {
  const std::uint32_t seconds = flags >> kWaitShift;
  return seconds != 0 ? seconds : kUsualWait;
}

struct RingBody {
  std::uint32_t lane;
  std::uint32_t reserved;
  std::uint64_t bytes;  // of the memory
};
// What plans that swap are made for. An agent that does not say so gets plans that only place.
struct SwapTermsBody {
  // Of copies between device and pinned host memory. A copy of s bytes takes latency + s / rate.
  double out_bytes_per_ns;
  double in_bytes_per_ns;
  double out_latency_ns;
  double in_latency_ns;
  std::uint64_t chunk_bytes;  // in which device memory is mapped: places of swapped blocks are multiples of it
  std::uint64_t
      memory_limit;     // of all that a plan places, and of blocks that stay, in bytes: the least time is added
                        // within it. 0: there is none, and a plan is as small as it can be while no time is added
  std::uint64_t flags;  // kPersistentStays, kNoSwaps
};
// Blocks that live through all iterations lie beside what a plan places: none is swapped, or has a place.
inline constexpr std::uint64_t kPersistentStays = 1;
// Plans are to place only, as if no terms had been sent. All else is as in the last terms.
inline constexpr std::uint64_t kNoSwaps = 2;
// Rates from a byte in a millisecond to a mebibyte in a nanosecond, latencies up to a second, chunks from 512 bytes to
// a gibibyte, powers of two.
constexpr bool is_chunk_size(std::uint64_t bytes) {
  return bytes >= 512 && bytes <= std::uint64_t{1} << 30 && (bytes & (bytes - 1)) == 0;
}
constexpr bool is_valid(const SwapTermsBody& terms) {
  const auto is_rate = [](double rate) { return rate >= 1e-6 && rate <= 0x1p20; };
  const auto is_latency = [](double latency) { return latency >= 0 && latency <= 1e9; };
  return is_rate(terms.out_bytes_per_ns) && is_rate(terms.in_bytes_per_ns) && is_latency(terms.out_latency_ns) &&
         is_latency(terms.in_latency_ns) && is_chunk_size(terms.chunk_bytes) &&
         (terms.flags & ~(kPersistentStays | kNoSwaps)) == 0;
}

struct PlanBody {
  std::uint64_t generation;
  std::uint64_t bytes;
};

inline constexpr std::uint64_t kControlMagic = 0x314c5443544d4d4d;  // "MMMTCTL1"
inline constexpr std::size_t kControlBytes = 4096;

// A page that both sides write; each word has one writer.
struct Control {
  std::uint64_t magic;
  std::uint32_t wire_version;
  std::uint32_t bytes;
  // By the agent.
  alignas(64) std::atomic<std::uint64_t> issued;  // sequence of the last record, may run behind
  std::atomic<std::uint64_t> recording;           // 1: records are being written; 0: paused, following
  std::atomic<std::uint64_t> adopted_generation;  // of the last plan that was adopted
  std::atomic<std::uint64_t> refused_generation;  // of the last plan that was refused
  std::atomic<std::uint64_t> clock_ticks;         // ticks and nanoseconds of one instant, refreshed now and then
  std::atomic<std::uint64_t> clock_nanoseconds;
  std::atomic<std::uint64_t> refused_excess;  // by so many bytes that plan's slab was too large, stored before the
                                              // generation; 0: it was refused for another reason
  // By the planner.
  alignas(64) std::atomic<std::uint64_t> processed;  // every record up to this sequence has been looked at, and what
                                                     // followed from it has been sent before this is stored
  std::atomic<std::uint64_t> heartbeat;              // grows while the planner lives and is not asleep in poll
  std::atomic<std::uint64_t> sent;  // messages sent over this connection, kWelcome included; stored before each is sent
  std::atomic<std::uint64_t> framework_reserved;  // bytes that PyTorch's caching allocator would have reserved by the
                                                  // last record; 0: not known
};
static_assert(sizeof(Control) <= kControlBytes);

// Detection is tried when the sequence reaches these points, in the planner and, for agents that wait, in the agent: so
// that what is found does not depend on timing. Dense at the beginning, then about every 1.6 %.
constexpr std::uint64_t next_check_point(std::uint64_t sequence) {
  const std::uint64_t step = sequence / 64;
  return sequence + (step < 16 ? 16 : step > 4096 ? 4096 : step);
}
inline constexpr std::uint64_t kFirstCheckPoint = 16;

}  // namespace memopt::shm
