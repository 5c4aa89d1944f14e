// The one lock over memory and order. It is held for a few instructions on the planned path and across driver calls
// that can't wait on the cold ones. No call that can wait for the device, or for a place in a stream's queue, is made
// with it held: a host function that the device runs may wait for another thread, which may need the lock. Functions
// that make such calls take the lock as an argument and give it back meanwhile; what the caller has looked at before
// may then have changed.
#pragma once

#include "agent/process/spin_lock.h"

namespace memopt::agent {

extern QuickLock arena_lock_word;

class ArenaLock : public QuickGuard {
 public:
  ArenaLock() noexcept : QuickGuard(arena_lock_word) {}
};

// While one lives, the lock is not held.
class Unlocked {
 public:
  explicit Unlocked(ArenaLock& lock) noexcept : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  ArenaLock& lock_;
};

}  // namespace memopt::agent
