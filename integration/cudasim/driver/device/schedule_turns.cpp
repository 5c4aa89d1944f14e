// Impl of the schedule: threads come to their turn and give it on.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstring>
#include <limits>
#include <utility>

#include "cudasim/cudasim.h"
#include "device/host_schedule_impl.h"

namespace cudasim {
namespace {

using State = ScheduledThread::State;

constexpr std::chrono::microseconds kBetweenLooks{50};

struct Own {
  std::uint64_t schedule = 0;  // by serial: several exist in tests
  ScheduledThread* thread = nullptr;
};
thread_local Own t_own;

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

std::uint64_t HostSchedule::Impl::next_serial() { return g_next_serial.fetch_add(1, std::memory_order_relaxed); }

HostSchedule::Impl::Impl(std::uint64_t the_seed, const std::string& path, std::chrono::milliseconds the_patience,
                         std::string the_call)
    : seed(the_seed), choice(the_seed, !the_call.empty()), patience(the_patience), at(std::move(the_call)) {
  if (path.empty()) return;
  trace = std::fopen(path.c_str(), "we");
  if (trace == nullptr) std::fprintf(stderr, "cudasim: CUDASIM_SCHEDULE_TRACE: %s can't be written\n", path.c_str());
}

HostSchedule::Impl::~Impl() {
  if (trace != nullptr) std::fclose(trace);
}

ScheduledThread& HostSchedule::Impl::add() {
  threads.push_back(std::make_unique<ScheduledThread>());
  ScheduledThread& thread = *threads.back();
  thread.number = threads.size();
  thread.priority = choice.first_priority();
  return thread;
}

void HostSchedule::Impl::become(ScheduledThread& thread) {
  t_own = {serial, &thread};
  thread.tid = own_tid();
  pthread_setspecific(end_key(), &thread);
}

void HostSchedule::Impl::leave() { t_own = {}; }

ScheduledThread* HostSchedule::Impl::own() const { return t_own.schedule == serial ? t_own.thread : nullptr; }

ScheduledThread& HostSchedule::Impl::enter(std::unique_lock<RawLock>& guard) {
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

void HostSchedule::Impl::note(const ScheduledThread& self, const char* what) {
  constexpr std::uint64_t kPrime = 0x100000001b3u;
  hash = (hash ^ self.number) * kPrime;
  for (const char* c = what; *c != '\0'; ++c) hash = (hash ^ std::uint64_t(static_cast<unsigned char>(*c))) * kPrime;
  if (trace != nullptr) std::fprintf(trace, "%" PRIu64 " %s\n", self.number, what);
}

void HostSchedule::Impl::progressed(ScheduledThread& self) {
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

HostSchedule::Impl::Kind HostSchedule::Impl::kind_of(const ScheduledThread& thread) const {
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

ScheduledThread* HostSchedule::Impl::next() {
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

ScheduledThread* HostSchedule::Impl::late(Clock::time_point now) const {
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

bool HostSchedule::Impl::all_idle() const {
  for (const auto& thread : threads) {
    if (thread->state != State::kEnded && thread->state != State::kAway && !thread->is_idle_worker()) return false;
  }
  return true;
}

bool HostSchedule::Impl::any_away() const {
  for (const auto& thread : threads) {
    if (thread->state == State::kAway) return true;
  }
  return false;
}

void HostSchedule::Impl::give_turn(ScheduledThread& self, std::unique_lock<RawLock>& guard) {
  ScheduledThread* const chosen = pass_turn(guard, &self);
  if (chosen == &self) return;
  guard.unlock();
  await_turn(self);
  guard.lock();
}

ScheduledThread* HostSchedule::Impl::pass_turn(std::unique_lock<RawLock>& guard, const ScheduledThread* self) {
  while (true) {
    ScheduledThread* const chosen = next();
    if (chosen != nullptr && chosen == self) return chosen;
    if (chosen != nullptr || all_idle()) {
      hand_to(chosen);
      return chosen;
    }
    guard.unlock();
    raw_sleep(kBetweenLooks);
    guard.lock();
  }
}

void HostSchedule::Impl::hand_to(ScheduledThread* chosen) {
  running = chosen;
  ++turns;
  if (chosen == nullptr) return;
  chosen->turn.store(1, std::memory_order_release);
  raw_futex_wake(chosen->turn);
}

void HostSchedule::Impl::await_turn(ScheduledThread& self) {
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

void HostSchedule::Impl::go_on_without_the_running_one() {
  // An own wait is no stall: there is no thread to hand the turn to, which is for it to see.
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
                 "cudasim: schedule: thread %" PRIu64
                 " (last step: %s) waits by means that are not seen; another one "
                 "goes on, the run may not be repeatable\n",
                 away->number, away->what);
  }
  hand_to(chosen);
}

void HostSchedule::Impl::report_deadlock() {
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

}  // namespace cudasim
