// Mutexes and read-write locks: taken as ever where they are free; else the thread waits in the schedule and tries
// again.
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "client.h"

namespace cudasim::client {
namespace {

Real<int(pthread_mutex_t*)> real_lock{"pthread_mutex_lock"};
Real<int(pthread_mutex_t*)> real_trylock{"pthread_mutex_trylock"};
Real<int(pthread_mutex_t*, clockid_t, const timespec*)> real_clocklock{"pthread_mutex_clocklock"};
Real<int(pthread_rwlock_t*)> real_rdlock{"pthread_rwlock_rdlock"};
Real<int(pthread_rwlock_t*)> real_wrlock{"pthread_rwlock_wrlock"};
Real<int(pthread_rwlock_t*)> real_tryrdlock{"pthread_rwlock_tryrdlock"};
Real<int(pthread_rwlock_t*)> real_trywrlock{"pthread_rwlock_trywrlock"};

// The C library's own word, 0 when the mutex is free; where it lies is part of its binary interface.
int is_free(void* mutex) {
  return __atomic_load_n(&static_cast<pthread_mutex_t*>(mutex)->__data.__lock, __ATOMIC_RELAXED) == 0 ? 1 : 0;
}

bool refuses_its_owner(const pthread_mutex_t& mutex) {
  constexpr int kKind = 3;
  return (mutex.__data.__kind & kKind) == PTHREAD_MUTEX_ERRORCHECK && mutex.__data.__owner == gettid();
}

int lock(const CudasimSchedule& schedule, pthread_mutex_t* mutex, std::int64_t deadline) {
  while (true) {
    const int result = real_trylock(mutex);
    if (result != EBUSY) return result;
    if (refuses_its_owner(*mutex)) return EDEADLK;
    const CudasimWait wait{"a mutex", mutex, is_free, mutex, nullptr, nullptr, deadline};
    if (schedule.wait(&wait) == 0) return ETIMEDOUT;
  }
}

template <typename Try>
int lock_shared(const CudasimSchedule& schedule, Try& attempt, pthread_rwlock_t* rwlock) {
  while (true) {
    const int result = attempt(rwlock);
    if (result != EBUSY) return result;
    schedule.nap("a read-write lock", rwlock, 0);
  }
}

}  // namespace
}  // namespace cudasim::client

using namespace cudasim::client;

SCHEDULE_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? lock(*schedule, mutex, -1) : real_lock(mutex);
}

SCHEDULE_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) noexcept {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? lock(*schedule, mutex, monotonic_deadline(clock, *until))
                             : real_clocklock(mutex, clock, until);
}

SCHEDULE_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, until);
}

SCHEDULE_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) noexcept {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? lock_shared(*schedule, real_tryrdlock, rwlock) : real_rdlock(rwlock);
}

SCHEDULE_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) noexcept {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? lock_shared(*schedule, real_trywrlock, rwlock) : real_wrlock(rwlock);
}
