// The program's threads as the simulator knows them: virtual clocks, and accesses of instrumented host code that are
// still to be checked.
//
// Threads: current() and log_access() may be called without the driver's lock, all else with it.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "access_log.h"
#include "units.h"

namespace cudasim {

struct HostThread {
  std::uint64_t number = 0;  // 1, 2, … in the order of their first call
  bool started = false;      // has a clock
  TimePoint clock{};
  TimePoint last_not_ready = TimePoint::min();  // clock after the last query that found work unfinished

  // Accesses since somebody looked; own lock, held for a few instructions.
  std::atomic_flag log_busy;
  std::unique_ptr<AccessLog> log = std::make_unique<AccessLog>();
  bool dirty = false;
};

class HostThreads {
 public:
  HostThreads();

  HostThread& current();                              // registers the thread when it is new
  HostThread& current_started();                      // …and gives it a clock: the latest of any thread
  void move_clock(HostThread& thread, TimePoint to);  // never backwards
  TimePoint latest() const { return latest_; }

  void log_access(std::uintptr_t address, std::size_t size, bool write);
  // Hands over and forgets what was logged, thread by thread.
  void collect(const std::function<void(const HostThread&, const AccessLog&)>& visit);

 private:
  const std::uint64_t serial_;  // of this object: several exist in tests
  std::mutex registry_;
  std::vector<std::unique_ptr<HostThread>> threads_;
  std::atomic<bool> any_dirty_{false};
  std::unique_ptr<AccessLog> spare_ = std::make_unique<AccessLog>();
  TimePoint latest_{};
};

// Virtual clock of the calling thread as of its last driver call. For the serialize gate, which works outside of the
// driver's lock.
TimePoint last_host_clock();

}  // namespace cudasim
