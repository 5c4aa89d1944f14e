// Condition variables: only the schedule knows which threads wait, so signals go there first.
#include <pthread.h>

#include <cerrno>
#include <climits>

#include "client.h"

namespace cudasim::client {
namespace {

// The versions before that were of another form.
constexpr const char* kVersion = "GLIBC_2.3.2";
Real<int(pthread_cond_t*, pthread_mutex_t*)> real_wait{"pthread_cond_wait", kVersion};
Real<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> real_timedwait{"pthread_cond_timedwait", kVersion};
Real<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> real_clockwait{"pthread_cond_clockwait"};
Real<int(pthread_cond_t*)> real_signal{"pthread_cond_signal", kVersion};
Real<int(pthread_cond_t*)> real_broadcast{"pthread_cond_broadcast", kVersion};

void unlock(void* mutex) { pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex)); }

int wait(const CudasimSchedule& schedule, pthread_cond_t* condition, pthread_mutex_t* mutex, std::int64_t deadline) {
  const CudasimWait wait{"a condition", condition, nullptr, nullptr, unlock, mutex, deadline};
  const bool signalled = schedule.wait(&wait) != 0;
  const int failure = pthread_mutex_lock(mutex);
  return failure != 0 ? failure : signalled ? 0 : ETIMEDOUT;
}

// The clock of pthread_cond_timedwait is an attribute; the C library keeps it in a bit of its own.
clockid_t clock_of(const pthread_cond_t& condition) {
  constexpr unsigned kMonotonic = 2;
  return (condition.__data.__wrefs & kMonotonic) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

}  // namespace
}  // namespace cudasim::client

using namespace cudasim::client;

SCHEDULE_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? wait(*schedule, condition, mutex, -1) : real_wait(condition, mutex);
}

SCHEDULE_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? wait(*schedule, condition, mutex, monotonic_deadline(clock_of(*condition), *until))
                             : real_timedwait(condition, mutex, until);
}

SCHEDULE_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                           const timespec* until) {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? wait(*schedule, condition, mutex, monotonic_deadline(clock, *until))
                             : real_clockwait(condition, mutex, clock, until);
}

SCHEDULE_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  const CudasimSchedule* const schedule = attached();
  if (schedule != nullptr && schedule->notify(condition, 1) != 0) return 0;
  return real_signal(condition);
}

SCHEDULE_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (const CudasimSchedule* const schedule = attached()) schedule->notify(condition, INT_MAX);
  return real_broadcast(condition);
}
