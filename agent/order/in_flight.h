// The program's threads that queue operations, and what each has announced (a hook was entered, the operation has its
// position on a stream) but perhaps not queued yet (the driver's function has not returned). An event that is recorded
// meanwhile on that stream, or a wait for it, may come before the operation, whichever thread records or waits: the one
// that has announced it, too.
//
// announce() under the arena's lock, queued() by the same thread without it, in_flight_reach() under the lock.
#pragma once

#include <cstdint>

namespace memopt::agent {

// A thread that queues operations, for its whole life; never used for another. 0: none.
using ThreadNumber = std::uint64_t;

// At once. While there are more, what is queued is not known for certain, and the host waits instead.
inline constexpr std::uint32_t kInFlightThreads = 32768;

// A line of its own: the thread writes it at each operation.
struct alignas(64) InFlight {
  std::uint64_t active = 0;  // 1 + the stream's slot; 0: nothing is in flight
  std::uint64_t position = 0;
  std::uint32_t several = 0;   // further ones of that stream are in flight with it
  std::uint32_t stuck = 0;     // it waits for room, and does not give way
  std::uint64_t unnamed = 0;   // operations in flight beside that one, on other streams
  ThreadNumber number = 0;     // of the thread whose entry it is
  std::uint64_t freed_in = 0;  // when it freed last: counted by the stream table, guarded by its lock
  std::uint64_t ticket = 0;    // of the first of the operations that are in flight, by the arena's count; 0: none
  std::uint64_t turn = 0;      // an earlier ticket that counts while the thread waits for room (TurnInFlight); 0: none
};

// The calling thread's entry; null before its first operation.
extern constinit thread_local InFlight* in_flight_own __attribute__((tls_model("initial-exec")));
InFlight* in_flight_register() noexcept;
void in_flight_add(InFlight& own) noexcept;
void in_flight_remove(InFlight& own) noexcept;

inline InFlight& in_flight() noexcept {
  InFlight* const own = in_flight_own;
  return own != nullptr ? *own : *in_flight_register();
}

inline ThreadNumber this_thread() noexcept { return in_flight().number; }

inline void announce(std::uint32_t slot, std::uint64_t position) noexcept {
  InFlight& own = in_flight();
  if (own.active != 0) [[unlikely]] {
    // One call queues several operations.
    if (own.active != slot + std::uint64_t{1}) {
      in_flight_add(own);
    } else {
      __atomic_store_n(&own.several, 1U, __ATOMIC_RELEASE);
    }
    return;
  }
  __atomic_store_n(&own.position, position, __ATOMIC_RELAXED);
  // Release pairs with the acquire in in_flight_reach: who sees the entry sees its position.
  __atomic_store_n(&own.active, slot + std::uint64_t{1}, __ATOMIC_RELEASE);
}

// Under the lock, for an operation that the calling thread announces.
inline void announce_ticket(std::uint64_t ticket) noexcept {
  InFlight& own = in_flight();
  if (own.ticket == 0) __atomic_store_n(&own.ticket, ticket, __ATOMIC_RELEASE);
}
// Is that all that the calling thread has in flight? Then queued() takes it back, too, under the lock, as if it had
// never been announced.
bool is_all_in_flight(std::uint32_t slot, std::uint64_t position) noexcept;
// Has another thread announced something that is not queued yet? If not, all that others have announced is, and can be
// waited for. False where that can't be told.
bool others_are_in_flight() noexcept;
// Likewise, and has it something to do but to wait for what others have in flight (StuckInFlight)?
bool others_get_on() noexcept;
// How many of these threads there are. Less than before, in the same holding of the lock: something has been queued.
std::uint32_t count_others_in_flight() noexcept;
// Of the operations that are in flight on any thread, the least; kNoneInFlight where none is. 0: that can't be told.
inline constexpr std::uint64_t kNoneInFlight = ~std::uint64_t{0};
std::uint64_t oldest_in_flight() noexcept;
// Whose turn it is, of what other threads have in flight, or gave up and are about to announce again (TurnInFlight);
// kNoneInFlight, and 0, likewise.
std::uint64_t first_turn_of_others() noexcept;
// Is it before that one?
bool others_come_before(std::uint64_t turn) noexcept;

inline void queued() noexcept {
  InFlight* const own = in_flight_own;
  if (own == nullptr) return;
  // Release pairs with the acquire in in_flight_reach: who sees the entry cleared comes after the driver's call.
  __atomic_store_n(&own->active, 0, __ATOMIC_RELEASE);
  if (own->several != 0) [[unlikely]]
    __atomic_store_n(&own->several, 0U, __ATOMIC_RELAXED);
  if (own->unnamed != 0) [[unlikely]]
    in_flight_remove(*own);
  // Last: of a thread that has none any more nothing is in the way. Release pairs with the acquire in oldest_in_flight.
  if (own->ticket != 0) __atomic_store_n(&own->ticket, 0, __ATOMIC_RELEASE);
}

// Once it is set and while it is there, the calling thread waits for others, and those that wait for it do so no
// longer. Of several, the first that was set counts.
class StuckInFlight {
 public:
  StuckInFlight() noexcept = default;
  ~StuckInFlight() {
    if (own_ != nullptr) __atomic_store_n(&own_->stuck, 0U, __ATOMIC_RELAXED);
  }
  StuckInFlight(const StuckInFlight&) = delete;
  StuckInFlight& operator=(const StuckInFlight&) = delete;

  void set() noexcept {
    InFlight& own = in_flight();
    if (own.stuck != 0) return;
    __atomic_store_n(&own.stuck, 1U, __ATOMIC_RELAXED);
    own_ = &own;
  }

 private:
  InFlight* own_ = nullptr;  // where this one has set it
};

// While it is there, the calling thread's operation has its turn by that ticket: the first that it had, though it has
// given its place on its stream up, and has a later one by now, or none yet. So does a transaction that begins again in
// the wait-die scheme (Rosenkrantz, Stearns and Lewis 1978): otherwise there might always be one before it.
class TurnInFlight {
 public:
  explicit TurnInFlight(std::uint64_t ticket) noexcept : own_(in_flight()), before_(own_.turn) {
    __atomic_store_n(&own_.turn, ticket, __ATOMIC_RELAXED);
  }
  ~TurnInFlight() { __atomic_store_n(&own_.turn, before_, __ATOMIC_RELAXED); }
  TurnInFlight(const TurnInFlight&) = delete;
  TurnInFlight& operator=(const TurnInFlight&) = delete;

 private:
  InFlight& own_;
  const std::uint64_t before_;
};

// Which threads may have something in flight on a stream: as a rule the one that announced last, or none.
struct Announcers {
  const InFlight* last = nullptr;
  bool several = false;

  // The calling thread has just announced an operation on it.
  void add(std::uint32_t slot) noexcept {
    if (last != in_flight_own) [[unlikely]]
      change(slot);
  }
  void change(std::uint32_t slot) noexcept;
};

// What is queued of a stream for certain. Behind `whole` lies what some thread has only announced, and, where `mixed`,
// also what others have queued since.
struct Reach {
  std::uint64_t whole = 0;
  bool mixed = false;
};

// Given that `position` is the last announced. `with_own`: what the calling thread has announced counts, as the
// driver's call will have returned.
Reach in_flight_reach(Announcers& announcers, std::uint32_t slot, std::uint64_t position,
                      bool with_own = false) noexcept;

// Has the thread ended, for certain?
bool has_ended(ThreadNumber thread) noexcept;

void forget_in_flight_after_fork() noexcept;

}  // namespace memopt::agent
