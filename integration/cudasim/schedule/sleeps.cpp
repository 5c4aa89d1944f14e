#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

namespace cudasim::client {
namespace {

// Shorter ones are those of locks, which look again; longer ones want to be that long.
constexpr std::int64_t kNap = 1'000'000;

Real<int(const timespec*, timespec*)> real_nanosleep{"nanosleep"};
Real<int(clockid_t, int, const timespec*, timespec*)> real_clock_nanosleep{"clock_nanosleep"};
Real<int()> real_yield{"sched_yield"};

void sleep_until(const CudasimSchedule& schedule, std::int64_t deadline) {
  const CudasimWait wait{"the end of its sleep", nullptr, nullptr, nullptr, nullptr, nullptr, deadline};
  schedule.wait(&wait);
}

void sleep_for(const CudasimSchedule& schedule, const timespec& time, const void* caller) {
  if (nanoseconds(time) < kNap) {
    schedule.nap("nanosleep", caller, nanoseconds(time));
  } else {
    sleep_until(schedule, monotonic_deadline_in(time));
  }
}

bool is_valid(const timespec* time) {
  return time != nullptr && time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < 1'000'000'000;
}

}  // namespace
}  // namespace cudasim::client

using namespace cudasim::client;

SCHEDULE_EXPORT int nanosleep(const timespec* time, timespec* left) {
  const CudasimSchedule* const schedule = scheduled();
  if (schedule == nullptr || !is_valid(time)) return real_nanosleep(time, left);
  sleep_for(*schedule, *time, __builtin_return_address(0));
  return 0;
}

SCHEDULE_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  const CudasimSchedule* const schedule = scheduled();
  if (schedule == nullptr || !is_valid(time)) return real_clock_nanosleep(clock, flags, time, left);
  if ((flags & TIMER_ABSTIME) != 0) {
    sleep_until(*schedule, monotonic_deadline(clock, *time));
  } else {
    sleep_for(*schedule, *time, __builtin_return_address(0));
  }
  return 0;
}

SCHEDULE_EXPORT int usleep(useconds_t microseconds) {
  const timespec time{time_t(microseconds / 1'000'000), long(microseconds % 1'000'000) * 1000};
  return nanosleep(&time, nullptr);
}

SCHEDULE_EXPORT unsigned sleep(unsigned seconds) {
  const timespec time{time_t(seconds), 0};
  timespec left{};
  return nanosleep(&time, &left) == 0 ? 0 : unsigned(left.tv_sec);
}

SCHEDULE_EXPORT int sched_yield() noexcept {
  const CudasimSchedule* const schedule = scheduled();
  if (schedule == nullptr) return real_yield();
  schedule->nap("sched_yield", __builtin_return_address(0), 0);
  return 0;
}
