// CUDASIM_SERIALIZE: driver calls of several threads happen in an order that does not depend on the machine.
//
// A thread at the gate passes only when every other thread of the process is quiescent: waiting at the gate too, or
// asleep in the kernel (state S) and not having run between two looks. Among those that wait the one with the least
// virtual host clock goes, ties by the order of first arrival. So the order of calls follows from virtual time and from
// the program's own synchronisation.
//
// Limits. What a thread does by itself after sleeping for wall time (nanosleep, poll with a timeout, input from
// outside) is not ordered. A thread that spins or computes is waited for, but only for kPatience: then the waiting one
// passes and a warning is printed once. Threads that start at the same instant are numbered in the order in which they
// reach the gate.
//
// Threads: thread-safe; called outside of the driver's lock.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

#include "units.h"

namespace cudasim {

class SerializeGate {
 public:
  static constexpr std::chrono::milliseconds kPatience{2000};

  explicit SerializeGate(bool enabled, std::chrono::milliseconds patience = kPatience);
  ~SerializeGate();

  void enter();  // before an API call; nothing when disabled; almost free while the process has one thread
  void leave();  // after it

  // The calling thread is the simulator's own (or no longer): it is not waited for.
  static void exclude_this_thread(bool excluded);

  std::uint64_t timeouts() const;  // threads that passed because patience ran out

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // null when disabled
};

}  // namespace cudasim
