// Operations that a thread has announced (a hook was entered, the operation has its position on a stream) but perhaps
// not queued yet (the driver's function has not returned). An event that another thread records meanwhile on that
// stream may come before the operation, and must not be taken for one that comes after it.
//
// announce() under the arena's lock, queued() by the same thread without it, covered() under the lock.
#pragma once

#include <cstdint>

namespace memopt::agent {

inline constexpr std::uint32_t kInFlightThreads = 256;

struct InFlight {
  std::uint64_t active = 0;  // 1 + the stream's slot; 0: nothing is in flight
  std::uint64_t position = 0;
};

extern InFlight in_flight_threads[kInFlightThreads];
// The calling thread's entry; null before its first operation. All threads beyond the table share one that is never
// cleared.
extern constinit thread_local InFlight* in_flight_own __attribute__((tls_model("initial-exec")));
InFlight* in_flight_register() noexcept;

inline void announce(std::uint32_t slot, std::uint64_t position) noexcept {
  InFlight* own = in_flight_own;
  if (own == nullptr) [[unlikely]]
    own = in_flight_register();
  own->position = position;
  __atomic_store_n(&own->active, slot + std::uint64_t{1}, __ATOMIC_RELAXED);
}

inline void queued() noexcept {
  // Release pairs with the acquire in in_flight_covered: who sees the entry cleared comes after the driver's call.
  if (in_flight_own != nullptr) __atomic_store_n(&in_flight_own->active, 0, __ATOMIC_RELEASE);
}

// The position of the stream up to which everything is queued for certain, given that `position` is the last announced.
std::uint64_t in_flight_covered(std::uint32_t slot, std::uint64_t position) noexcept;

void forget_in_flight_after_fork() noexcept;

}  // namespace memopt::agent
