// Inside of the schedule of host threads: who has the turn, who gets it next.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/host_schedule.h"
#include "device/raw_futex.h"
#include "device/schedule_choice.h"
#include "device/scheduled_thread.h"

namespace cudasim {

struct HostSchedule::Impl {
  using Clock = std::chrono::steady_clock;

  Impl(std::uint64_t the_seed, const std::string& path, std::chrono::milliseconds the_patience, std::string the_call);
  ~Impl();

  // --- threads; with the lock

  ScheduledThread& add();
  void become(ScheduledThread& thread);
  void leave();  // the calling thread is none of the schedule's any more
  ScheduledThread* own() const;
  // The calling thread with its turn: a new one, or one that lost it, waits for it here.
  ScheduledThread& enter(std::unique_lock<RawLock>& guard);
  void note(const ScheduledThread& self, const char* what);
  void progressed(ScheduledThread& self);

  // --- who goes on; with the lock

  enum class Kind { kNow, kQuiet, kLater };

  Kind kind_of(const ScheduledThread& thread) const;
  // Null when no thread could go on at present.
  ScheduledThread* next();
  // What wall time alone lets go on: not by the time of day, which differs from run to run, but in an order of their
  // own.
  ScheduledThread* late(Clock::time_point now) const;
  bool all_idle() const;
  bool any_away() const;
  // The calling thread's state says what it waits for; returns with its turn.
  void give_turn(ScheduledThread& self, std::unique_lock<RawLock>& guard);
  // Gives it to a thread that can go on, as soon as there is one, if need be to `self`; null: only idle ones are left.
  ScheduledThread* pass_turn(std::unique_lock<RawLock>& guard, const ScheduledThread* self = nullptr);
  void hand_to(ScheduledThread* chosen);
  // Without the lock.
  void await_turn(ScheduledThread& self);
  // It waits by means that are not seen, or it would have come to a step. One that computes is waited for.
  void go_on_without_the_running_one();
  [[noreturn]] void report_deadlock();

  static std::uint64_t next_serial();  // several schedules exist in tests

  const std::uint64_t serial = next_serial();
  mutable RawLock lock;
  const std::uint64_t seed;
  ScheduleChoice choice;
  const std::chrono::milliseconds patience;
  const std::string at;                                   // a driver call, or empty
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

}  // namespace cudasim
