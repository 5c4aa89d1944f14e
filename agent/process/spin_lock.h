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
    // 0 free, 1 taken, 2 taken and a thread sleeps.
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

// The same for a lock that is taken so often that what giving it back costs matters: one plain store, and a look at
// whether a thread sleeps on the word. It may be given back for a while and taken again (unlock, lock).
//
// The store and the look may change places in the processor, so that a thread which falls asleep in between is missed:
// if no other thread comes, it sleeps for a millisecond then. In return no locked instruction is needed to give the
// lock back. One sleeper at a time is woken: while it is on its way others may have the lock, and need not be woken for
// that. Those that find others asleep sleep longer: one that was missed is woken after these, and hundreds of threads
// that look each millisecond would leave no processor to the owner.
struct QuickLock {
  int word = 0;      // 1: taken
  int sleepers = 0;  // threads that sleep on it, or are about to
  int waking = 0;    // one of them was woken, and does not run yet
};

class QuickGuard {
 public:
  explicit QuickGuard(QuickLock& lock) noexcept : lock_(lock) { this->lock(); }
  ~QuickGuard() { unlock(); }
  QuickGuard(const QuickGuard&) = delete;
  QuickGuard& operator=(const QuickGuard&) = delete;

  void lock() noexcept {
    if (__atomic_exchange_n(&lock_.word, 1, __ATOMIC_ACQUIRE) != 0) [[unlikely]]
      wait();
  }
  // Pairs with the acquire of the next owner.
  void unlock() noexcept {
    __atomic_store_n(&lock_.word, 0, __ATOMIC_RELEASE);
    if (__atomic_load_n(&lock_.sleepers, __ATOMIC_RELAXED) != 0) [[unlikely]]
      wake();
  }

 private:
  // A raw system call: no point at which the program's thread can be cancelled.
  [[gnu::cold, gnu::noinline]] void wait() noexcept {
    constexpr int kSpins = 100;
    const int kept = errno;
    do {
      for (int i = 0; i < kSpins && __atomic_load_n(&lock_.word, __ATOMIC_RELAXED) != 0; ++i) __builtin_ia32_pause();
      if (__atomic_load_n(&lock_.word, __ATOMIC_RELAXED) != 0) {
        const bool first = __atomic_fetch_add(&lock_.sleepers, 1, __ATOMIC_SEQ_CST) == 0;
        const timespec longest{0, first ? 1'000'000 : 50'000'000};
        syscall(SYS_futex, &lock_.word, FUTEX_WAIT_PRIVATE, 1, &longest, nullptr, 0);
        __atomic_store_n(&lock_.waking, 0, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&lock_.sleepers, 1, __ATOMIC_RELAXED);
      }
    } while (__atomic_exchange_n(&lock_.word, 1, __ATOMIC_ACQUIRE) != 0);
    errno = kept;
  }
  [[gnu::cold, gnu::noinline]] void wake() noexcept {
    if (__atomic_exchange_n(&lock_.waking, 1, __ATOMIC_RELAXED) != 0) return;
    const int kept = errno;
    syscall(SYS_futex, &lock_.word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    errno = kept;
  }

  QuickLock& lock_;
};

}  // namespace memopt::agent
