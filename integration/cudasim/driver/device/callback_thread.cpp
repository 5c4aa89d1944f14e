#include "device/callback_thread.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "device/serialize_gate.h"

namespace cudasim {
namespace {

// Long enough that a program which calls the driver at all is never overtaken in practice; it bounds only how long a
// program that waits outside of the driver for its host function has to wait.
constexpr std::chrono::milliseconds kIdleCheck{25};

thread_local bool t_is_callback_thread = false;

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
  thread_.join();
}

void CallbackThread::start() {
  if (thread_.joinable()) return;
  // The program's signals go to its own threads. Faults stay deliverable: they belong to the code that runs here.
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { main(); });
  } catch (...) {
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

void CallbackThread::wait_for_a_job() {
  std::unique_lock lock(driver_mutex_, std::adopt_lock);
  finished_.wait(lock);
  lock.release();
}

void CallbackThread::wait_for_a_job(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(driver_mutex_, std::adopt_lock);
  finished_.wait_until(lock, until);
  lock.release();
}

bool CallbackThread::is_this_thread() { return t_is_callback_thread; }

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
      job.finished();
      finished_.notify_all();
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
