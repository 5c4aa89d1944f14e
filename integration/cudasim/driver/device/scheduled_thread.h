// One thread of the program as the schedule knows it, for host_schedule.cpp.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "cudasim/schedule.h"

namespace cudasim {

// What code that naps was found to wait for: another thread of the program, or something outside of it.
enum class NapSite { kUnknown, kLock, kOutside };

struct ScheduledThread {
  enum class State {
    kReady,    // stands at a point, or is new
    kWaiting,  // for `wait`
    kQuiet,    // for `ready`, or that nothing else could go on
    kNapping,  // until another one has got on, or no other could go on
    kAway,     // lost its turn: it waits by means that are not seen
    kEnded,
  };

  std::uint64_t number = 0;  // 1, 2, …
  std::int64_t priority = 0;
  pid_t tid = 0;  // 0: not started yet
  State state = State::kReady;
  const char* what = "starts";
  const void* where = nullptr;  // what it waits for, or code that naps; for people

  const CudasimWait* wait = nullptr;
  bool notified = false;
  std::uint64_t waits_since = 0;  // number of its wait: the longest waiting one is notified first
  const std::function<bool()>* ready = nullptr;
  const std::function<bool()>* wants_quiet = nullptr;
  bool outcome = false;  // of the wait, set by who gives it the turn
  // Its last wait ended by time or quiet alone: waiting again is no progress.
  bool unproductive = false;
  int patience_log2 = 0;        // of how long it would wait, when it began
  std::uint64_t nap_began = 0;  // progress so far
  NapSite* nap_site = nullptr;  // since its last step
  bool nap_gave_turn = false;
  std::chrono::steady_clock::time_point nap_began_at{};
  std::chrono::steady_clock::time_point deadline{};

  std::atomic<std::uint32_t> turn{0};  // set by who gives it the turn, cleared by the thread

  bool is_idle_worker() const { return state == State::kQuiet && wants_quiet != nullptr && *wants_quiet; }
};

}  // namespace cudasim
