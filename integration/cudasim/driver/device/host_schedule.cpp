#include "device/host_schedule.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "cudasim/cudasim.h"
#include "device/raw_futex.h"
#include "device/schedule_choice.h"
#include "device/scheduled_thread.h"

namespace cudasim {
namespace {

using Clock = std::chrono::steady_clock;
using State = ScheduledThread::State;

constexpr std::chrono::microseconds kBetweenLooks{50};

struct Own {
  std::uint64_t schedule = 0;  // by serial: several exist in tests
  ScheduledThread* thread = nullptr;
};
thread_local Own t_own;

std::atomic<HostSchedule*> g_current{nullptr};
std::atomic<std::uint64_t> g_next_serial{1};

// Runs after the destructors of the program's thread-local objects, which still call the driver.
void end_of_thread(void*) {
  if (HostSchedule* const schedule = HostSchedule::current()) schedule->end_thread();
}

pthread_key_t end_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    if (pthread_key_create(&made, end_of_thread) != 0)
      std::fputs("cudasim: schedule: no thread's end can be seen: they count as waiting\n", stderr);
    return made;
  }();
  return key;
}

pid_t own_tid() { return pid_t(raw_syscall(SYS_gettid, 0)); }

bool is_asleep(pid_t tid) {
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", int(tid));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;  // has ended
  const ssize_t size = ::read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return true;
  text[size] = '\0';
  const char* const name_ends = std::strrchr(text, ')');
  return name_ends != nullptr && name_ends[1] == ' ' && std::strchr("SDZXTt", name_ends[2]) != nullptr;
}

// " 0x7f… of libmemopt.so"
std::string place(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, " %p", address);
  std::string where = text;
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return where;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  return where + " of " + (slash != nullptr ? slash + 1 : info.dli_fname);
}

}  // namespace

struct HostSchedule::Impl {
  Impl(std::uint64_t the_seed, const std::string& path, std::chrono::milliseconds the_patience)
      : seed(the_seed), choice(the_seed), patience(the_patience) {
    if (path.empty()) return;
    trace = std::fopen(path.c_str(), "we");
    if (trace == nullptr) std::fprintf(stderr, "cudasim: CUDASIM_SCHEDULE_TRACE: %s can't be written\n", path.c_str());
  }
  ~Impl() {
    if (trace != nullptr) std::fclose(trace);
  }

  // --- threads; with the lock

  ScheduledThread& add() {
    threads.push_back(std::make_unique<ScheduledThread>());
    ScheduledThread& thread = *threads.back();
    thread.number = threads.size();
    thread.priority = choice.first_priority();
    return thread;
  }

  void become(ScheduledThread& thread) {
    t_own = {serial, &thread};
    thread.tid = own_tid();
    pthread_setspecific(end_key(), &thread);
  }

  ScheduledThread* own() const { return t_own.schedule == serial ? t_own.thread : nullptr; }

  // The calling thread with its turn: a new one, or one that lost it, waits for it here.
  ScheduledThread& enter(std::unique_lock<RawLock>& guard) {
    ScheduledThread* self = own();
    if (self == nullptr) {
      self = &add();
      become(*self);
    }
    if (running == self) return *self;
    self->state = State::kReady;
    if (running == nullptr) {
      running = self;
      return *self;
    }
    guard.unlock();
    await_turn(*self);
    guard.lock();
    return *self;
  }

  void note(const ScheduledThread& self, const char* what) {
    constexpr std::uint64_t kPrime = 0x100000001b3u;
    hash = (hash ^ self.number) * kPrime;
    for (const char* c = what; *c != '\0'; ++c) hash = (hash ^ std::uint64_t(static_cast<unsigned char>(*c))) * kPrime;
    if (trace != nullptr) std::fprintf(trace, "%" PRIu64 " %s\n", self.number, what);
  }

  void progressed(ScheduledThread& self) {
    self.unproductive = false;
    if (self.nap_site != nullptr) {
      if (self.nap_gave_turn) *self.nap_site = NapSite::kLock;
      if (*self.nap_site == NapSite::kUnknown) *self.nap_site = NapSite::kOutside;
      self.nap_site = nullptr;
      self.nap_gave_turn = false;
    }
    ++progress;
    last_progress = Clock::now();
  }

  // --- who goes on; with the lock

  enum class Kind { kNow, kQuiet, kLater };

  Kind kind_of(const ScheduledThread& thread) const {
    switch (thread.state) {
      case State::kReady:
        return Kind::kNow;
      case State::kWaiting:
        return thread.notified || (thread.wait->ready != nullptr && thread.wait->ready(thread.wait->argument) != 0)
                   ? Kind::kNow
                   : Kind::kLater;
      case State::kQuiet:
        if ((*thread.ready)()) return Kind::kNow;
        return !*thread.wants_quiet || (*thread.wants_quiet)() ? Kind::kQuiet : Kind::kLater;
      case State::kNapping:
        return progress > thread.nap_began ? Kind::kNow : Kind::kLater;
      case State::kAway:
      case State::kEnded:
        break;
    }
    return Kind::kLater;
  }

  // Null when no thread could go on at present.
  ScheduledThread* next() {
    Kind first = Kind::kLater;
    candidates.clear();
    for (const auto& thread : threads) {
      const Kind kind = kind_of(*thread);
      if (kind == Kind::kLater || kind > first) continue;
      if (kind < first) candidates.clear();
      first = kind;
      candidates.push_back({thread->number, thread->priority, thread.get() == running});
    }
    const Clock::time_point now = Clock::now();
    if (first != Kind::kNow && now - last_progress > patience && !all_idle() && !any_away()) report_deadlock();
    ScheduledThread* const chosen =
        candidates.empty() ? late(now) : threads[candidates[choice.choose(candidates)].number - 1].get();
    if (chosen == nullptr) return nullptr;
    chosen->unproductive = first != Kind::kNow || chosen->state == State::kNapping;
    chosen->outcome = first == Kind::kNow;
    chosen->state = State::kReady;
    return chosen;
  }

  // What wall time alone lets go on: not by the time of day, which differs from run to run, but in an order of their
  // own.
  ScheduledThread* late(Clock::time_point now) const {
    ScheduledThread* first = nullptr;
    ScheduledThread* napping = nullptr;
    for (const auto& thread : threads) {
      if (thread->state == State::kWaiting && thread->wait->deadline_ns >= 0) {
        const auto order = [](const ScheduledThread& one) { return std::pair(one.patience_log2, one.waits_since); };
        if (first == nullptr || order(*thread) < order(*first)) first = thread.get();
      } else if (thread->state == State::kNapping) {
        if (napping == nullptr || thread->waits_since < napping->waits_since) napping = thread.get();
      }
    }
    return first != nullptr && now >= first->deadline ? first : napping;
  }

  bool all_idle() const {
    for (const auto& thread : threads) {
      if (thread->state != State::kEnded && thread->state != State::kAway && !thread->is_idle_worker()) return false;
    }
    return true;
  }

  bool any_away() const {
    for (const auto& thread : threads) {
      if (thread->state == State::kAway) return true;
    }
    return false;
  }

  // The calling thread's state says what it waits for; returns with its turn.
  void give_turn(ScheduledThread& self, std::unique_lock<RawLock>& guard) {
    while (true) {
      ScheduledThread* const chosen = next();
      if (chosen == &self) return;
      const bool nobody = chosen == nullptr && all_idle();
      if (chosen != nullptr || nobody) {
        hand_to(chosen);
        guard.unlock();
        await_turn(self);
        guard.lock();
        return;
      }
      guard.unlock();
      raw_sleep(kBetweenLooks);
      guard.lock();
    }
  }

  void hand_to(ScheduledThread* chosen) {
    running = chosen;
    ++turns;
    if (chosen == nullptr) return;
    chosen->turn.store(1, std::memory_order_release);
    raw_futex_wake(chosen->turn);
  }

  // Without the lock.
  void await_turn(ScheduledThread& self) {
    std::uint64_t turns_seen = std::numeric_limits<std::uint64_t>::max();
    Clock::time_point since = Clock::now();
    while (self.turn.load(std::memory_order_acquire) == 0) {
      raw_futex_wait(self.turn, 0, patience / 4);
      if (self.turn.load(std::memory_order_acquire) != 0) break;
      const std::lock_guard guard(lock);
      if (turns != turns_seen) {
        turns_seen = turns;
        since = Clock::now();
      } else if (Clock::now() - since > patience) {
        go_on_without_the_running_one();
      }
    }
    self.turn.store(0, std::memory_order_relaxed);
  }

  // It waits by means that are not seen, or it would have come to a step. One that computes is waited for.
  void go_on_without_the_running_one() {
    // An own wait is no stall: there is nobody to hand the turn to, which is for it to see.
    if (running == nullptr || running->state != State::kReady || running->tid == 0 || !is_asleep(running->tid)) return;
    ScheduledThread* const away = running;
    away->state = State::kAway;
    ScheduledThread* const chosen = next();
    if (chosen == nullptr) {
      away->state = State::kReady;
      return;
    }
    if (stalls++ == 0) {
      std::fprintf(stderr,
                   "cudasim: schedule: thread %" PRIu64 " (last step: %s) waits by means that are not seen; another one "
                   "goes on, the run may not be repeatable\n",
                   away->number, away->what);
    }
    hand_to(chosen);
  }

  [[noreturn]] void report_deadlock() {
    std::string text = "cudasim: deadlock with CUDASIM_SCHEDULE=" + std::to_string(seed) + ":";
    const char* separator = " ";
    for (const auto& thread : threads) {
      if (thread->state == State::kEnded || thread->is_idle_worker()) continue;
      text += separator + ("thread " + std::to_string(thread->number));
      text += thread->state == State::kNapping ? " sleeps again and again in " : " waits for ";
      text += thread->what;
      if (thread->where != nullptr) text += place(thread->where);
      separator = ", ";
    }
    text += "\n";
    std::fputs(text.c_str(), stderr);
    if (trace != nullptr) std::fflush(trace);
    _exit(CUDASIM_DEADLOCK_EXIT_CODE);
  }

  const std::uint64_t serial = g_next_serial.fetch_add(1, std::memory_order_relaxed);
  mutable RawLock lock;
  const std::uint64_t seed;
  ScheduleChoice choice;
  const std::chrono::milliseconds patience;
  std::vector<std::unique_ptr<ScheduledThread>> threads;  // by number
  std::vector<ScheduleChoice::Candidate> candidates;
  std::map<const void*, NapSite> nap_sites;  // by the code that naps
  ScheduledThread* running = nullptr;
  std::uint64_t steps = 0, turns = 0, waits = 0, stalls = 0;
  std::uint64_t progress = 0;
  Clock::time_point last_progress = Clock::now();
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::FILE* trace = nullptr;
};

HostSchedule::HostSchedule(std::uint64_t seed, const std::string& trace, std::chrono::milliseconds patience)
    : impl_(std::make_unique<Impl>(seed, trace, patience)) {}
HostSchedule::~HostSchedule() = default;

HostSchedule* HostSchedule::current() { return g_current.load(std::memory_order_acquire); }
void HostSchedule::set_current(HostSchedule* schedule) { g_current.store(schedule, std::memory_order_release); }

std::uint64_t HostSchedule::expect_thread() {
  const std::lock_guard guard(impl_->lock);
  return impl_->add().number;
}

void HostSchedule::start_thread(std::uint64_t number) {
  std::unique_lock guard(impl_->lock);
  impl_->become(*impl_->threads[number - 1]);
  ScheduledThread& self = *impl_->own();
  if (impl_->running == nullptr) {
    impl_->running = &self;
  } else if (impl_->running != &self) {  // its turn may have come before it began
    guard.unlock();
    impl_->await_turn(self);
    guard.lock();
  } else {
    self.turn.store(0, std::memory_order_relaxed);
  }
  impl_->note(self, "starts");
  impl_->progressed(self);
}

void HostSchedule::cancel_thread(std::uint64_t number) {
  const std::lock_guard guard(impl_->lock);
  impl_->threads[number - 1]->state = State::kEnded;
}

bool HostSchedule::has_ended(std::uint64_t number) const {
  return impl_->threads[number - 1]->state == State::kEnded;
}

void HostSchedule::end_thread() {
  if (impl_->own() == nullptr) return;
  std::unique_lock guard(impl_->lock);
  ScheduledThread& self = impl_->enter(guard);
  impl_->note(self, "ends");
  self.state = State::kEnded;
  impl_->progressed(self);
  t_own = {};
  while (true) {
    ScheduledThread* const chosen = impl_->next();
    if (chosen != nullptr || impl_->all_idle()) {
      impl_->hand_to(chosen);
      return;
    }
    guard.unlock();
    raw_sleep(kBetweenLooks);
    guard.lock();
  }
}

bool HostSchedule::is_scheduled() const { return impl_->own() != nullptr; }

void HostSchedule::point(const char* what) {
  std::unique_lock guard(impl_->lock);
  ScheduledThread& self = impl_->enter(guard);
  self.what = what;
  impl_->note(self, what);
  impl_->progressed(self);
  ++impl_->steps;
  self.priority = impl_->choice.step(self.priority);
  self.state = State::kReady;
  impl_->give_turn(self, guard);
}

bool HostSchedule::wait(const CudasimWait& wait) {
  std::unique_lock guard(impl_->lock);
  ScheduledThread& self = impl_->enter(guard);
  self.what = wait.what;
  self.where = wait.object;
  self.wait = &wait;
  self.notified = false;
  self.waits_since = ++impl_->waits;
  self.deadline = Clock::time_point(std::chrono::nanoseconds(wait.deadline_ns));
  self.patience_log2 = int(std::bit_width(std::uint64_t(std::max<std::int64_t>((self.deadline - Clock::now()).count(), 0))));
  if (!self.unproductive) {
    impl_->note(self, wait.what);
    impl_->progressed(self);
  }
  self.state = State::kWaiting;
  if (wait.release != nullptr) wait.release(wait.release_argument);
  impl_->give_turn(self, guard);
  self.wait = nullptr;
  return self.outcome;
}

bool HostSchedule::wait_for_quiet(const char* what, const std::function<bool()>& ready,
                                  const std::function<bool()>& wants_quiet) {
  std::unique_lock guard(impl_->lock);
  ScheduledThread& self = impl_->enter(guard);
  self.what = what;
  self.where = nullptr;
  self.ready = &ready;
  self.wants_quiet = &wants_quiet;
  if (!self.unproductive) {
    impl_->note(self, what);
    impl_->progressed(self);
  }
  self.state = State::kQuiet;
  impl_->give_turn(self, guard);
  self.ready = self.wants_quiet = nullptr;
  return self.outcome;
}

int HostSchedule::notify(const void* object, int count) {
  const std::lock_guard guard(impl_->lock);
  int notified = 0;
  for (; notified < count; ++notified) {
    ScheduledThread* longest = nullptr;
    for (const auto& thread : impl_->threads) {
      if (thread->state != State::kWaiting || thread->notified || thread->wait->object != object) continue;
      if (longest == nullptr || thread->waits_since < longest->waits_since) longest = thread.get();
    }
    if (longest == nullptr) break;
    longest->notified = true;
  }
  return notified;
}

void HostSchedule::nap(const char* what, const void* caller, std::chrono::nanoseconds time) {
  std::unique_lock guard(impl_->lock);
  ScheduledThread& self = impl_->enter(guard);
  self.what = what;
  self.where = caller;
  const Clock::time_point now = Clock::now();
  NapSite& site = impl_->nap_sites[caller];
  if (self.nap_site != &site) {
    if (!self.unproductive) impl_->progressed(self);
    self.nap_site = &site;
    self.nap_began_at = now;
  }
  const std::chrono::milliseconds kept = site == NapSite::kLock      ? std::chrono::milliseconds(0)
                                         : site == NapSite::kOutside ? kOutsidePatience
                                                                     : kNapPatience;
  if (now - self.nap_began_at < kept && time.count() != 0) {
    guard.unlock();
    raw_sleep(time);
    return;
  }
  if (!self.nap_gave_turn) impl_->note(self, what);
  self.nap_gave_turn = true;
  self.nap_began = impl_->progress;
  self.waits_since = ++impl_->waits;
  self.state = State::kNapping;
  impl_->give_turn(self, guard);
  guard.unlock();
  if (!self.outcome) raw_sleep(time);
}

std::uint64_t HostSchedule::steps() const {
  const std::lock_guard guard(impl_->lock);
  return impl_->steps;
}

std::uint64_t HostSchedule::switches() const {
  const std::lock_guard guard(impl_->lock);
  return impl_->turns;
}

std::uint64_t HostSchedule::trace_hash() const {
  const std::lock_guard guard(impl_->lock);
  return impl_->hash;
}

void HostSchedule::flush_trace() {
  const std::lock_guard guard(impl_->lock);
  if (impl_->trace != nullptr) std::fflush(impl_->trace);
}

}  // namespace cudasim
