// The simulator's one thread for host functions, as the CUDA driver has one. Started with the first host function; all
// signals of the program are blocked on it, so that its handlers run on its own threads.
//
// Threads: functions are called with the driver's lock held; jobs run without it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace cudasim {

class CallbackThread {
 public:
  // `idle` is called with the lock when the program has left the driver alone for a while and a job may be due that
  // nobody asks for.
  CallbackThread(std::mutex& driver_mutex, std::function<void()> idle);
  ~CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  void start();  // idempotent
  void stop();   // without the lock; waits for the job that is running, drops the others
  // `finished` is called with the lock after `job` has run without it.
  void post(std::function<void()> job, std::function<void()> finished);

  // Host functions exist that have not been posted: somebody may wait for them outside of the driver.
  void expect(bool expecting);
  void note_activity() { ++activity_; }

  // Gives up the driver's lock until some job has finished (or the time is over).
  void wait_for_a_job();
  void wait_for_a_job(std::chrono::steady_clock::time_point until);

  static bool is_this_thread();

 private:
  struct Job {
    std::function<void()> body, finished;
  };
  void main();

  std::mutex& driver_mutex_;
  std::function<void()> idle_;
  std::deque<Job> jobs_;
  std::condition_variable posted_, finished_;
  std::thread thread_;
  bool expecting_ = false;
  bool stop_ = false;
  std::uint64_t activity_ = 0;
};

}  // namespace cudasim
