#include "agent/order/in_flight.h"

#include <pthread.h>

#include <algorithm>
#include <new>

#include "agent/process/spin_lock.h"

namespace memopt::agent {

constinit thread_local InFlight* in_flight_own = nullptr;

namespace {

constexpr std::uint64_t kIndexBits = 16;
static_assert(kInFlightThreads < (1u << kIndexBits));

constinit InFlight g_threads[kInFlightThreads] = {};
// Of a thread for which there was no host memory.
constinit InFlight g_last_resort = {};
// Operations that no entry names, and threads whose entries are not in the table. While there are any, nothing is
// certain.
constinit std::uint64_t g_unnamed = 0;
constinit std::uint64_t g_unlisted = 0;  // of these, the threads

constinit int g_lock = 0;
constinit std::uint32_t g_used = 0;        // entries that were ever in use
constinit std::uint64_t g_registered = 0;  // threads so far
constinit std::uint32_t g_free[kInFlightThreads] = {};
constinit std::uint32_t g_free_count = 0;

constinit pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t g_key = 0;
constinit bool g_has_key = false;

bool is_listed(const InFlight& entry) noexcept { return &entry >= g_threads && &entry < g_threads + kInFlightThreads; }

// At the end of a thread. Should a later destructor of its make another call, it gets a new entry, and this runs again.
void release_entry(void* entry) noexcept {
  auto* const own = static_cast<InFlight*>(entry);
  queued();
  in_flight_own = nullptr;
  if (!is_listed(*own)) {
    __atomic_fetch_sub(&g_unlisted, 1, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&g_unnamed, 1, __ATOMIC_RELEASE);
    delete own;
    return;
  }
  const LockGuard guard(g_lock);
  __atomic_store_n(&own->number, 0, __ATOMIC_RELEASE);
  g_free[g_free_count++] = static_cast<std::uint32_t>(own - g_threads);
}

void make_key() { g_has_key = pthread_key_create(&g_key, release_entry) == 0; }

// Beyond the table: the thread has an entry of its own, which is not looked at.
[[gnu::cold]] InFlight* register_unlisted() noexcept {
  __atomic_fetch_add(&g_unnamed, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&g_unlisted, 1, __ATOMIC_RELAXED);
  InFlight* own = new (std::nothrow) InFlight;
  if (own == nullptr) {
    own = &g_last_resort;
  } else if (g_has_key) {
    pthread_setspecific(g_key, own);
  }
  own->number = ++g_registered << kIndexBits | kInFlightThreads;
  return in_flight_own = own;
}

}  // namespace

InFlight* in_flight_register() noexcept {
  pthread_once(&g_key_once, make_key);
  const LockGuard guard(g_lock);
  if (g_free_count == 0 && g_used == kInFlightThreads) return register_unlisted();
  std::uint32_t index = g_used;
  if (g_free_count != 0) {
    index = g_free[--g_free_count];
  } else {
    __atomic_store_n(&g_used, g_used + 1, __ATOMIC_RELEASE);
  }
  InFlight* const own = in_flight_own = &g_threads[index];
  __atomic_store_n(&own->number, ++g_registered << kIndexBits | index, __ATOMIC_RELEASE);
  if (g_has_key) pthread_setspecific(g_key, own);
  return own;
}

void in_flight_add(InFlight& own) noexcept {
  __atomic_fetch_add(&g_unnamed, 1, __ATOMIC_RELAXED);
  ++own.unnamed;
}

void in_flight_remove(InFlight& own) noexcept {
  // Release pairs with the acquire in in_flight_reach.
  __atomic_fetch_sub(&g_unnamed, own.unnamed, __ATOMIC_RELEASE);
  own.unnamed = 0;
}

namespace {

// The first operation that the thread has in flight on the stream; 0: none. `more`: others of its own are behind it.
std::uint64_t first_in_flight(const InFlight& thread, std::uint32_t slot, bool* more) noexcept {
  if (__atomic_load_n(&thread.active, __ATOMIC_ACQUIRE) != slot + std::uint64_t{1}) return 0;
  *more = __atomic_load_n(&thread.several, __ATOMIC_ACQUIRE) != 0;
  return __atomic_load_n(&thread.position, __ATOMIC_RELAXED);
}

}  // namespace

void Announcers::change(std::uint32_t slot) noexcept {
  bool more = false;
  if (last != nullptr && first_in_flight(*last, slot, &more) != 0) several = true;
  last = in_flight_own;
}

bool is_all_in_flight(std::uint32_t slot, std::uint64_t position) noexcept {
  const InFlight* const own = in_flight_own;
  return own != nullptr && is_listed(*own) && own->active == slot + std::uint64_t{1} && own->position == position &&
         own->several == 0 && own->unnamed == 0;
}

namespace {

// Of the threads in the table: a ticket stands for all that its thread has in flight, named or not.
template <typename Each>
void for_each_thread(const Each& each) noexcept {
  const std::uint32_t used = __atomic_load_n(&g_used, __ATOMIC_ACQUIRE);
  for (std::uint32_t i = 0; i < used; ++i) each(g_threads[i]);
}

std::uint64_t ticket_of(const InFlight& thread) noexcept { return __atomic_load_n(&thread.ticket, __ATOMIC_ACQUIRE); }

bool others_can_be_told() noexcept { return __atomic_load_n(&g_unlisted, __ATOMIC_ACQUIRE) == 0; }

// The least that is not 0 of what `of` says of the threads; kNoneInFlight, and 0, as of oldest_in_flight().
template <typename Of>
std::uint64_t least(const Of& of) noexcept {
  if (!others_can_be_told()) return 0;
  std::uint64_t found = kNoneInFlight;
  for_each_thread([&](const InFlight& thread) {
    if (const std::uint64_t one = of(thread); one != 0) found = std::min(found, one);
  });
  return found;
}

}  // namespace

std::uint64_t oldest_in_flight() noexcept { return least(ticket_of); }

bool others_are_in_flight() noexcept { return count_others_in_flight() != 0; }

std::uint32_t count_others_in_flight() noexcept {
  std::uint32_t count = 0;
  if (others_can_be_told()) {
    for_each_thread([&](const InFlight& thread) { count += &thread != in_flight_own && ticket_of(thread) != 0; });
  }
  return count;
}

std::uint64_t first_turn_of_others() noexcept {
  return least([](const InFlight& thread) -> std::uint64_t {
    if (&thread == in_flight_own) return 0;
    const std::uint64_t turn = __atomic_load_n(&thread.turn, __ATOMIC_RELAXED);
    const std::uint64_t ticket = ticket_of(thread);
    return turn == 0 || (ticket != 0 && ticket < turn) ? ticket : turn;
  });
}

bool others_come_before(std::uint64_t turn) noexcept {
  const std::uint64_t first = first_turn_of_others();
  return first != 0 && first < turn;
}

bool others_get_on() noexcept {
  bool any = false;
  for_each_thread([&](const InFlight& thread) {
    any = any ||
          (&thread != in_flight_own && ticket_of(thread) != 0 && __atomic_load_n(&thread.stuck, __ATOMIC_RELAXED) == 0);
  });
  return any && others_can_be_told();
}

Reach in_flight_reach(Announcers& announcers, std::uint32_t slot, std::uint64_t position, bool with_own) noexcept {
  if (__atomic_load_n(&g_unnamed, __ATOMIC_ACQUIRE) != 0) return {0, true};
  const InFlight* const without = with_own ? in_flight_own : nullptr;
  std::uint64_t least = position + 1;
  std::uint64_t count = 0;  // operations in flight that are known one by one
  bool more = false;
  const auto look = [&](const InFlight& thread) {
    bool its = false;
    const std::uint64_t first = &thread != without ? first_in_flight(thread, slot, &its) : 0;
    if (first == 0 || first > position) return false;
    least = std::min(least, first);
    more = more || its;
    ++count;
    return true;
  };
  if (!announcers.several) {
    if (announcers.last != nullptr) look(*announcers.last);
    // Whatever it has announced, nothing of another thread is behind it.
    return {least - 1, false};
  }
  bool others = false;
  const std::uint32_t used = __atomic_load_n(&g_used, __ATOMIC_ACQUIRE);
  for (std::uint32_t i = 0; i < used; ++i) {
    const bool in_flight = look(g_threads[i]) || &g_threads[i] == without;
    others = others || (in_flight && &g_threads[i] != announcers.last);
  }
  announcers.several = others;
  return {least - 1, more || count != position + 1 - least};
}

bool has_ended(ThreadNumber thread) noexcept {
  const std::uint64_t index = thread & ((std::uint64_t{1} << kIndexBits) - 1);
  return index < kInFlightThreads && __atomic_load_n(&g_threads[index].number, __ATOMIC_ACQUIRE) != thread;
}

void forget_in_flight_after_fork() noexcept {
  for (std::uint32_t i = 0; i < g_used; ++i) g_threads[i] = {};
  g_lock = 0;
  g_used = 0;
  g_free_count = 0;
  g_unnamed = 0;
  g_unlisted = 0;
  in_flight_own = nullptr;
  if (g_has_key) pthread_setspecific(g_key, nullptr);
}

}  // namespace memopt::agent
