// syscall(SYS_futex, …): what locks outside of the C library wait by, memopt's and C++'s among them.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "client.h"

namespace cudasim::client {
namespace {

Real<long(long, long, long, long, long, long, long)> real_syscall{"syscall"};

struct Futex {
  const int* word;
  int value;
};

int has_changed(void* argument) {
  const auto* const futex = static_cast<const Futex*>(argument);
  return __atomic_load_n(futex->word, __ATOMIC_ACQUIRE) != futex->value ? 1 : 0;
}

long wait(const CudasimSchedule& schedule, int* word, int operation, int value, const timespec* limit) {
  Futex futex{word, value};
  if (has_changed(&futex) != 0) {
    errno = EAGAIN;
    return -1;
  }
  CudasimWait wait{"a futex", word, has_changed, &futex, nullptr, nullptr, -1};
  if (limit != nullptr) {
    // FUTEX_WAIT takes how long, FUTEX_WAIT_BITSET until when.
    wait.deadline_ns =
        (operation & FUTEX_CMD_MASK) == FUTEX_WAIT
            ? monotonic_deadline_in(*limit)
            : monotonic_deadline((operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC, *limit);
  }
  if (schedule.wait(&wait) != 0) return 0;
  errno = ETIMEDOUT;
  return -1;
}

}  // namespace
}  // namespace cudasim::client

using namespace cudasim::client;

SCHEDULE_EXPORT long syscall(long number, ...) noexcept {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  const auto pass_on = [&] {
    return real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  };
  if (number != SYS_futex) return pass_on();
  auto* const word = reinterpret_cast<int*>(arguments[0]);
  const int operation = int(arguments[1]), value = int(arguments[2]);
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      if (const CudasimSchedule* const schedule = scheduled())
        return wait(*schedule, word, operation, value, reinterpret_cast<const timespec*>(arguments[3]));
      break;
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      if (const CudasimSchedule* const schedule = attached()) {
        const int woken = schedule->notify(word, value);
        if (woken >= value) return woken;
        arguments[2] = value - woken;
        const long more = pass_on();
        return more < 0 ? more : more + woken;
      }
      break;
    default:
      break;
  }
  return pass_on();
}
