#include "device/callback_thread.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "device/host_schedule.h"
#include "device/serialize_gate.h"

namespace cudasim {
namespace {

// Long enough that a program which calls the driver at all is never overtaken in practice; it bounds only how long a
// program that waits outside of the driver for its host function has to wait.
constexpr std::chrono::milliseconds kIdleCheck{25};

// Who has more patience than that wants the job done, and does not only ask.
constexpr std::chrono::milliseconds kInsists{500};

thread_local bool t_is_callback_thread = false;
thread_local bool t_makes_own_thread = false;

}  // namespace

CallbackThread::CallbackThread(std::mutex& driver_mutex, std::function<void()> idle)
    : driver_mutex_(driver_mutex), idle_(std::move(idle)) {}

CallbackThread::~CallbackThread() { stop(); }

void CallbackThread::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(driver_mutex_);
    stop_ = true;
  }
  posted_.notify_all();
  // It ends in its turn.
  if (HostSchedule* const schedule = HostSchedule::current(); schedule != nullptr && number_ != 0)
    schedule->wait_for_quiet("the end of host functions", [&] { return schedule->has_ended(number_); });
  thread_.join();
}

void CallbackThread::start() {
  if (thread_.joinable()) return;
  // The program's signals go to its own threads. Faults stay deliverable: they belong to the code that runs here.
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  HostSchedule* const schedule = HostSchedule::current();
  number_ = schedule != nullptr ? schedule->expect_thread() : 0;
  t_makes_own_thread = true;
  try {
    thread_ = std::thread([this, schedule, number = number_] {
      if (schedule == nullptr) return main();
      schedule->start_thread(number);
      scheduled_main(*schedule);
    });
    t_makes_own_thread = false;
  } catch (...) {
    t_makes_own_thread = false;
    if (schedule != nullptr) schedule->cancel_thread(number_);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CallbackThread::post(std::function<void()> job, std::function<void()> finished) {
  start();
  jobs_.push_back({std::move(job), std::move(finished)});
  posted_.notify_all();
}

void CallbackThread::expect(bool expecting) {
  if (expecting == expecting_) return;
  expecting_ = expecting;
  if (!expecting) return;
  start();
  posted_.notify_all();
}

bool CallbackThread::makes_own_thread() { return t_makes_own_thread; }

// Nothing sleeps where the schedule is on: it knows of the wait, and when it is over.
bool CallbackThread::wait_scheduled(HostSchedule& schedule, bool insist) {
  const std::uint64_t seen = jobs_finished_;
  driver_mutex_.unlock();
  if (insist) {
    schedule.wait_for_quiet("a host function to return", [this, seen] { return jobs_finished_ != seen; });
  } else {
    schedule.point("waits a moment for a host function");
  }
  driver_mutex_.lock();
  return jobs_finished_ != seen;
}

void CallbackThread::wait_for_a_job() {
  if (HostSchedule* const schedule = HostSchedule::current()) {
    const std::uint64_t seen = jobs_finished_;
    struct Seen {
      const CallbackThread& thread;
      std::uint64_t jobs;
    } now{*this, seen};
    CudasimWait wait{};
    wait.what = "a host function to return";
    wait.deadline_ns = -1;
    wait.argument = &now;
    wait.ready = [](void* argument) {
      const auto& [thread, jobs] = *static_cast<const Seen*>(argument);
      return int(thread.jobs_finished_ != jobs);
    };
    driver_mutex_.unlock();
    schedule->wait(wait);
    driver_mutex_.lock();
    return;
  }
  std::unique_lock lock(driver_mutex_, std::adopt_lock);
  finished_.wait(lock);
  lock.release();
}

bool CallbackThread::wait_for_a_job(std::chrono::steady_clock::time_point until) {
  const auto now = std::chrono::steady_clock::now();
  if (HostSchedule* const schedule = HostSchedule::current()) return wait_scheduled(*schedule, until - now > kInsists);
  if (now >= until) return false;
  std::unique_lock lock(driver_mutex_, std::adopt_lock);
  finished_.wait_until(lock, until);
  lock.release();
  return true;
}

bool CallbackThread::is_this_thread() { return t_is_callback_thread; }

void CallbackThread::finish(Job& job) {
  job.finished();
  ++jobs_finished_;
  finished_.notify_all();
}

// Where no thread could go on, the program is waiting for a host function by its own means.
void CallbackThread::scheduled_main(HostSchedule& schedule) {
  t_is_callback_thread = true;
  pthread_setname_np(pthread_self(), "cudasim-host");
  std::unique_lock lock(driver_mutex_);
  while (!stop_) {
    if (!jobs_.empty()) {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      schedule.point("host function");
      try {
        job.body();
      } catch (...) {
        std::fprintf(stderr, "cudasim: a host function ended by an exception; it is ignored\n");
      }
      schedule.point("host function returns");
      lock.lock();
      finish(job);
      continue;
    }
    lock.unlock();
    const bool ready = schedule.wait_for_quiet(
        "host functions", [this] { return stop_ || !jobs_.empty(); }, [this] { return expecting_; });
    lock.lock();
    if (!ready && jobs_.empty() && expecting_) idle_();
  }
}

void CallbackThread::main() {
  t_is_callback_thread = true;
  pthread_setname_np(pthread_self(), "cudasim-host");
  SerializeGate::exclude_this_thread(true);
  std::unique_lock lock(driver_mutex_);
  std::uint64_t seen = activity_;
  while (!stop_) {
    if (!jobs_.empty()) {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      SerializeGate::exclude_this_thread(false);
      try {
        job.body();
      } catch (...) {
        std::fprintf(stderr, "cudasim: a host function ended by an exception; it is ignored\n");
      }
      SerializeGate::exclude_this_thread(true);
      lock.lock();
      finish(job);
      seen = activity_;
      continue;
    }
    if (!expecting_) {
      posted_.wait(lock);
      seen = activity_;
      continue;
    }
    if (posted_.wait_for(lock, kIdleCheck) == std::cv_status::timeout && jobs_.empty() && expecting_ &&
        seen == activity_)
      idle_();
    seen = activity_;
  }
}

}  // namespace cudasim
