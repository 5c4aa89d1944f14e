#include "device/host_schedule.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "device/host_schedule_impl.h"

namespace cudasim {
namespace {

using State = ScheduledThread::State;

std::atomic<HostSchedule*> g_current{nullptr};

}  // namespace

HostSchedule::HostSchedule(std::uint64_t seed, const std::string& trace, std::chrono::milliseconds patience,
                           const std::string& at)
    : impl_(std::make_unique<Impl>(seed, trace, patience, at)) {}
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

bool HostSchedule::has_ended(std::uint64_t number) const { return impl_->threads[number - 1]->state == State::kEnded; }

void HostSchedule::end_thread() {
  if (impl_->own() == nullptr) return;
  std::unique_lock guard(impl_->lock);
  ScheduledThread& self = impl_->enter(guard);
  impl_->note(self, "ends");
  self.state = State::kEnded;
  impl_->progressed(self);
  impl_->leave();
  impl_->pass_turn(guard);
}

bool HostSchedule::is_scheduled() const { return impl_->own() != nullptr; }

void HostSchedule::point(const char* what, const char* call) {
  std::unique_lock guard(impl_->lock);
  ScheduledThread& self = impl_->enter(guard);
  self.what = what;
  impl_->note(self, what);
  impl_->progressed(self);
  ++impl_->steps;
  if (impl_->at.empty() || (call != nullptr && impl_->at == call)) self.priority = impl_->choice.step(self.priority);
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
  self.deadline = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(wait.deadline_ns));
  self.patience_log2 = int(std::bit_width(
      std::uint64_t(std::max<std::int64_t>((self.deadline - std::chrono::steady_clock::now()).count(), 0))));
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
  const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
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
