// CUDASIM_SCHEDULE: one thread of the program runs at a time, and a seed decides which.
//
// A thread gives its turn away at the entry and at the return of each driver call (point), and where it waits: for the
// device's host functions in here, for locks, conditions and other threads by what libcudasim_schedule.so reports of
// the C library's functions (include/cudasim/schedule.h). A waiting thread never sleeps in the program's own wait: it
// stands here, and goes on when what it waits for has happened. So a run follows from the seed and from what the
// program does, and can be repeated.
//
// Who could go on, the first kind that there is:
//   1. threads that stand at a point, whose wait is over, or that have napped while another one got on;
//   2. threads that wait for nothing else to happen (waiting_for_quiet);
//   3. threads whose deadline has passed, those that wanted to wait longest last, and threads that nap, in turn.
// When there is none for kPatience of wall time, nor any but napping ones and deadlines: that is a deadlock. It is
// reported and the process ends with CUDASIM_DEADLOCK_EXIT_CODE. Wall time, because a thread or process that isn't
// scheduled, memopt's planner for one, may have to do something first.
//
// Limits. A thread that waits by other means (poll, read, a barrier) keeps its turn; after kPatience another one goes
// on and a line says so: the run may not be repeatable then. What naps wait for can't be seen either. If a wait is over
// while the thread keeps its turn, it was for something outside of the program, and from then on the same code keeps
// its turn for kOutsidePatience; if it takes longer than kNapPatience, other threads go on, and the same code is taken
// to wait for a lock of theirs.
//
// Threads: thread-safe; never called with the driver's lock held. Called by the C library's lock functions: takes no
// lock of theirs.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cudasim/schedule.h"

namespace cudasim {

class HostSchedule {
 public:
  static constexpr std::chrono::milliseconds kPatience{5000};
  static constexpr std::chrono::milliseconds kNapPatience{400};
  static constexpr std::chrono::milliseconds kOutsidePatience{2000};

  // `trace`: a file that each step is written to; empty: none. `at`: the driver call at whose steps alone threads fall
  // behind the others (ScheduleChoice); empty: at all.
  explicit HostSchedule(std::uint64_t seed, const std::string& trace = {},
                        std::chrono::milliseconds patience = kPatience, const std::string& at = {});
  ~HostSchedule();  // its threads have ended, or never go on

  // The schedule of this process, or null. Set once; by the driver when it is made, by tests.
  static HostSchedule* current();
  static void set_current(HostSchedule* schedule);

  // Threads. One that comes by without having been announced is added.
  std::uint64_t expect_thread();
  void start_thread(std::uint64_t number);
  void cancel_thread(std::uint64_t number);
  bool has_ended(std::uint64_t number) const;  // to be asked by what a wait is ready by: no lock is taken
  void end_thread();                           // the calling one makes no further step; by itself when a thread ends
  bool is_scheduled() const;

  // `call`: the driver call that is entered or returns; null: none.
  void point(const char* what, const char* call = nullptr);
  bool wait(const CudasimWait& wait);
  // Until `ready`, or until no other thread could go on; true when ready. `idle`: a thread that waits for work, which
  // is no part of a deadlock; and what it waits for quiet for, if it does now.
  bool wait_for_quiet(const char* what, const std::function<bool()>& ready,
                      const std::function<bool()>& wants_quiet = {});
  int notify(const void* object, int count);
  void nap(const char* what, const void* caller, std::chrono::nanoseconds time);

  // What libcudasim_schedule.so is handed.
  static const CudasimSchedule& table();

  std::uint64_t steps() const;
  std::uint64_t switches() const;
  std::uint64_t trace_hash() const;  // of all steps: thread and what it does
  void flush_trace();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cudasim
