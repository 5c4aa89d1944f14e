#include <semaphore.h>

#include <cerrno>

#include "client.h"

namespace cudasim::client {
namespace {

Real<int(sem_t*)> real_wait{"sem_wait"};
Real<int(sem_t*, clockid_t, const timespec*)> real_clockwait{"sem_clockwait"};

int is_positive(void* semaphore) {
  int value = 0;
  return sem_getvalue(static_cast<sem_t*>(semaphore), &value) == 0 && value > 0 ? 1 : 0;
}

int wait(const CudasimSchedule& schedule, sem_t* semaphore, std::int64_t deadline) {
  while (sem_trywait(semaphore) != 0) {
    if (errno != EAGAIN) return -1;
    const CudasimWait wait{"a semaphore", semaphore, is_positive, semaphore, nullptr, nullptr, deadline};
    if (schedule.wait(&wait) == 0) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace cudasim::client

using namespace cudasim::client;

SCHEDULE_EXPORT int sem_wait(sem_t* semaphore) {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? wait(*schedule, semaphore, -1) : real_wait(semaphore);
}

SCHEDULE_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  const CudasimSchedule* const schedule = scheduled();
  return schedule != nullptr ? wait(*schedule, semaphore, monotonic_deadline(clock, *until))
                             : real_clockwait(semaphore, clock, until);
}

SCHEDULE_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  return sem_clockwait(semaphore, CLOCK_REALTIME, until);
}
