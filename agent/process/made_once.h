// An object that is made at its first use, and never destroyed. Without a lock: threads that come at the same time each
// make one, and all but one of these are dropped. A static variable of a function has a lock, which a forked child may
// find taken for ever, and which must not be held while the dynamic linker's is waited for.
#pragma once

#include <atomic>

namespace memopt::agent {

template <typename Value>
class MadeOnce {
 public:
  constexpr MadeOnce() = default;
  MadeOnce(const MadeOnce&) = delete;
  MadeOnce& operator=(const MadeOnce&) = delete;

  // `make` returns a new object, or null: then it is asked again the next time.
  template <typename Make>
  Value* get(Make&& make) {
    // Acquire pairs with the release of the thread that made it.
    Value* const made = value_.load(std::memory_order_acquire);
    return made != nullptr ? made : keep_first(make());
  }

  // Null: not yet.
  Value* made() const { return value_.load(std::memory_order_acquire); }

 private:
  [[gnu::cold, gnu::noinline]] Value* keep_first(Value* made) {
    Value* first = nullptr;
    if (value_.compare_exchange_strong(first, made, std::memory_order_acq_rel, std::memory_order_acquire)) return made;
    delete made;
    return first;
  }

  std::atomic<Value*> value_{nullptr};
};

}  // namespace memopt::agent
