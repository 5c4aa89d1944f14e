#include "client.h"

#include <pthread.h>

namespace cudasim::client {
namespace {

constinit std::atomic<const CudasimSchedule*> g_schedule{nullptr};

void detach() { g_schedule.store(nullptr, std::memory_order_relaxed); }

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return nanoseconds(time);
}

}  // namespace

const CudasimSchedule* attached() { return g_schedule.load(std::memory_order_acquire); }

std::int64_t monotonic_deadline(clockid_t clock, const timespec& time) {
  const std::int64_t deadline = nanoseconds(time);
  const std::int64_t monotonic = clock == CLOCK_MONOTONIC ? deadline : deadline - now(clock) + now(CLOCK_MONOTONIC);
  return monotonic > 0 ? monotonic : 0;
}

std::int64_t monotonic_deadline_in(const timespec& time) { return now(CLOCK_MONOTONIC) + nanoseconds(time); }

}  // namespace cudasim::client

using namespace cudasim::client;

SCHEDULE_EXPORT void cudasim_schedule_attach(const CudasimSchedule* schedule) {
  if (schedule == nullptr || schedule->version != CUDASIM_SCHEDULE_VERSION) return;
  static const int registered = pthread_atfork(nullptr, nullptr, detach);
  static_cast<void>(registered);
  // Pairs with the acquire in attached().
  g_schedule.store(schedule, std::memory_order_release);
}
