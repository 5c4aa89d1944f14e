// A lock and a wait of the kernel's own words: the C library's functions are interposed where the schedule is on
// (libcudasim_schedule.so), and would come back here.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace cudasim {

// 0, or a negative error number; errno is left alone.
inline long raw_syscall(long number, long a, long b = 0, long c = 0, long d = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}

inline void raw_futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds limit) {
  const timespec time{time_t(limit.count() / 1'000'000'000), long(limit.count() % 1'000'000'000)};
  raw_syscall(SYS_futex, long(&word), FUTEX_WAIT_PRIVATE, value, long(&time));
}

inline void raw_futex_wake(std::atomic<std::uint32_t>& word) {
  raw_syscall(SYS_futex, long(&word), FUTEX_WAKE_PRIVATE, 1);
}

inline void raw_sleep(std::chrono::nanoseconds time) {
  const timespec request{time_t(time.count() / 1'000'000'000), long(time.count() % 1'000'000'000)};
  raw_syscall(SYS_nanosleep, long(&request));
}

class RawLock {
 public:
  void lock() {
    while (word_.exchange(1, std::memory_order_acquire) != 0) raw_futex_wait(word_, 1, std::chrono::microseconds(200));
  }
  void unlock() { word_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace cudasim
