// A lock for a few instructions: constant-initialised, trivially destructible, and re-initialised in a forked child by
// setting it to zero. A waiter sleeps in the kernel after a short while, so that an owner that lost its CPU is not spun
// on.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace memopt::agent {

class LockGuard {
 public:
  explicit LockGuard(int& word) noexcept : word_(word) {
    // 0 free, 1 taken, 2 taken and somebody sleeps.
    int expected = 0;
    if (!__atomic_compare_exchange_n(&word_, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) wait();
  }
  ~LockGuard() {
    // Pairs with the acquire of the next owner.
    if (__atomic_exchange_n(&word_, 0, __ATOMIC_RELEASE) == 2) {
      const int kept = errno;
      syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
      errno = kept;
    }
  }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  [[gnu::cold, gnu::noinline]] void wait() noexcept {
    const int kept = errno;
    while (__atomic_exchange_n(&word_, 2, __ATOMIC_ACQUIRE) != 0) {
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
    }
    errno = kept;
  }

  int& word_;
};

// The same for a lock that is taken so often that what giving it back costs matters: that is one plain store, since
// nobody sleeps on the word. A waiter spins, then looks again every 20 microseconds.
class QuickGuard {
 public:
  explicit QuickGuard(int& word) noexcept : word_(word) {
    if (__atomic_exchange_n(&word_, 1, __ATOMIC_ACQUIRE) != 0) [[unlikely]]
      wait();
  }
  // Pairs with the acquire of the next owner.
  ~QuickGuard() { __atomic_store_n(&word_, 0, __ATOMIC_RELEASE); }
  QuickGuard(const QuickGuard&) = delete;
  QuickGuard& operator=(const QuickGuard&) = delete;

 private:
  [[gnu::cold, gnu::noinline]] void wait() noexcept {
    constexpr int kSpins = 200;
    const int kept = errno;
    do {
      for (int i = 0; i < kSpins && __atomic_load_n(&word_, __ATOMIC_RELAXED) != 0; ++i) __builtin_ia32_pause();
      if (__atomic_load_n(&word_, __ATOMIC_RELAXED) != 0) {
        const timespec pause{0, 20'000};
        nanosleep(&pause, nullptr);
      }
    } while (__atomic_exchange_n(&word_, 1, __ATOMIC_ACQUIRE) != 0);
    errno = kept;
  }

  int& word_;
};

}  // namespace memopt::agent
