// When bytes change: runs the pieces of queued operations.
//
// Nominal: at the virtual end, in the order of (end, sequence). With a seed: at any moment that the declared edges
// allow, chosen by a hash of (seed, sequence). Eager operations run in the call that queued them, as soon as their
// predecessors have run, some with their first pieces only; late ones start a few driver calls afterwards; lazy ones
// run when a host thread is about to rely on them: then exactly what is declared to come before, unordered pieces
// interleaved at random.
//
// Threads: driver's lock held. require() gives it up while host functions run.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "device/callback_thread.h"
#include "device/operation.h"

namespace cudasim {

class ByteRunner {
 public:
  struct Hooks {
    std::function<bool(const Operation&)> in_error;          // the context has a sticky error
    std::function<void(const Operation&, CUresult)> failed;  // a piece ended with an error
    std::function<void(Operation&)> host_function_ran;       // with the lock, before successors may run
    std::function<void(Operation&)> finished;                // everything of it has run
  };

  ByteRunner(std::optional<std::uint64_t> seed, Checker& checker, CallbackThread& callbacks, Hooks hooks);

  static void link(const OperationPtr& predecessor, Operation& operation);
  void add(Operation& operation);    // after its links
  void timed(Operation& operation);  // its end has become known

  // Another driver call begins; virtual time is `now`.
  void advance(TimePoint now);

  // Runs these and whatever they depend on; returns when all of it has run. False: it would wait for ever (on the
  // callback thread).
  bool require(std::span<const OperationPtr> targets);
  // The same without waiting for host functions longer than `patience`. False: something is still to run.
  bool try_require(std::span<const OperationPtr> targets, std::chrono::milliseconds patience);
  // For the callback thread: makes the first host function that is still to come run.
  void hurry_host_functions();

  // The operation whose piece is running on this thread, or null.
  const Operation* running() const { return running_; }

 private:
  struct InOrderOfEnd {
    bool operator()(const Operation* a, const Operation* b) const {
      return a->end != b->end ? a->end < b->end : a->sequence < b->sequence;
    }
  };

  std::uint64_t random();
  void choose_haste(Operation& operation);
  void enabled(Operation& operation);  // its predecessors have run
  void run_due(TimePoint now);
  void run_eager();
  std::vector<Operation*> closure_of(std::vector<Operation*> targets);
  void run_closure(std::vector<Operation*> targets);
  void run_in_order(std::vector<Operation*> closure);
  void run_interleaved(const std::vector<Operation*>& closure);
  bool skipped(const Operation& operation) const;
  void run_piece(Operation& operation);
  void run_whole(Operation& operation);
  void post(Operation& operation);
  void complete(Operation& operation);

  std::optional<std::uint64_t> seed_;
  std::uint64_t random_state_;
  Checker& checker_;
  CallbackThread& callbacks_;
  Hooks hooks_;
  std::set<Operation*, InOrderOfEnd> due_;  // nominal: timed, not run
  // With a seed: predecessors have run and the seed wants it to run unasked; the first is the call from which on, the
  // second the sequence.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Operation*> eager_;
  std::map<std::uint64_t, Operation*> host_functions_;  // not posted, by sequence
  std::uint64_t calls_ = 0;
  std::uint64_t visit_ = 0;
  std::vector<Operation*>* newly_enabled_ = nullptr;  // where complete() also notes what it enabled
  const Operation* running_ = nullptr;
  AccessLog log_;
};

}  // namespace cudasim
