#include "agent/order/in_flight.h"

#include <algorithm>

namespace memopt::agent {

constinit InFlight in_flight_threads[kInFlightThreads] = {};
constinit thread_local InFlight* in_flight_own = nullptr;

namespace {

constinit std::uint32_t g_registered = 0;

}  // namespace

InFlight* in_flight_register() noexcept {
  const std::uint32_t index = __atomic_fetch_add(&g_registered, 1, __ATOMIC_RELAXED);
  in_flight_own = &in_flight_threads[std::min(index, kInFlightThreads - 1)];
  return in_flight_own;
}

std::uint64_t in_flight_covered(std::uint32_t slot, std::uint64_t position) noexcept {
  const std::uint32_t registered = __atomic_load_n(&g_registered, __ATOMIC_RELAXED);
  // The last entry's threads overwrite each other's: what they have in flight is not known.
  if (registered >= kInFlightThreads) return 0;
  for (std::uint32_t i = 0; i < registered; ++i) {
    const InFlight& thread = in_flight_threads[i];
    if (&thread == in_flight_own) continue;
    if (__atomic_load_n(&thread.active, __ATOMIC_ACQUIRE) == slot + std::uint64_t{1}) {
      position = std::min(position, thread.position - 1);
    }
  }
  return position;
}

void forget_in_flight_after_fork() noexcept {
  for (InFlight& thread : in_flight_threads) thread = {};
  __atomic_store_n(&g_registered, 0, __ATOMIC_RELAXED);
  in_flight_own = nullptr;
}

}  // namespace memopt::agent
