// What a program may rely on, by CUDA's rules: which calls have returned when a thread makes its next one, and which
// work of the device is over or comes before, whatever the threads' order.
//
// Calls are numbered by thread; work by its place in the program. Work comes before an operation on a stream if it was
// queued on the same stream (or on one that the legacy stream orders) by a call that has returned for certain, or if
// the calling thread knows that it is over, or if it comes before such work. Nothing is taken from the time at which
// calls happen to be made.
#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

#include "program.h"

namespace memopt::order {

inline constexpr std::size_t kMostOps = 512;
using OpSet = std::bitset<kMostOps>;

class HappensBefore {
 public:
  HappensBefore(int threads, std::vector<StreamKind> streams);

  // The thread's next call comes after that of `op`; false if it does so anyway.
  bool await(int thread, std::size_t op);
  bool has_returned(int thread, std::size_t op) const;
  OpSet returned(int thread) const;  // for the thread's next call

  // What comes before work that the thread queues on the stream next.
  OpSet before(int thread, int stream) const;
  OpSet before_of(std::size_t op) const { return ops_[op].before; }  // with the operation itself, if it is work
  // What is over when the thread has waited for the stream, or for the device.
  OpSet through(int thread, int stream) const;
  OpSet through_all(int thread) const;

  const OpSet& over(int thread) const { return threads_[std::size_t(thread)].over; }
  void learn(int thread, const OpSet& over) { threads_[std::size_t(thread)].over |= over; }

  // Appends the call. `stream`: it is work of that stream, or -1. `extra` comes before it besides.
  std::size_t add(int thread, int stream, const OpSet& extra = {});
  // The host's side of the call that was added last: what the thread knows after it.
  void publish();

  // The slot has another stream from now on, which nothing has been queued on.
  void replace_stream(int stream);
  // The slot's stream is still the one that the operation was queued on.
  bool is_current(std::size_t op) const;
  int stream_of(std::size_t op) const { return ops_[op].stream; }
  int thread_of(std::size_t op) const { return ops_[op].thread; }
  int call_of(std::size_t op) const { return ops_[op].call; }

 private:
  struct Call {
    int thread = 0;
    int call = 0;  // of its thread, from 0
    int stream = -1;
    int instance = 0;  // of the stream slot
    OpSet before{};
    std::vector<int> clock{};  // calls by thread that have returned before this one's return, itself included
    OpSet over{};
  };
  struct Thread {
    std::vector<int> clock;
    OpSet over{};
  };

  bool same_stream(const Call& earlier, int thread, int stream) const;
  bool orders(const Call& earlier, int thread, int stream) const;

  std::vector<StreamKind> streams_;
  std::vector<int> instances_;
  std::vector<Thread> threads_;
  std::vector<Call> ops_;
};

}  // namespace memopt::order
