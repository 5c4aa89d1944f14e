// Which streams work was issued on, and what has to be waited for before freed memory is used again.
//
// A free takes a *fence*: for each stream on which work was issued, an event recorded then. Memory is handed out again
// at once; the events of its fence become *owed*. Before the next operation on any stream, that stream waits (on the
// device, not on the host) for what is owed by the other streams. So no host thread waits, and an operation never runs
// before the last users of the memory it was given.
//
// Events of one stream are ordered, so of each stream only the newest one counts, and a stream waits for each at most
// once. Not thread-safe: the pool's mutex guards it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace caching_pool {

using StreamId = std::uint64_t;

struct StreamStatistics {
  std::uint64_t events_recorded = 0;
  std::uint64_t waits_issued = 0;
  std::uint64_t host_waits = 0;  // a free had to synchronise
};

// A point in a stream: an event recorded there.
struct Mark {
  StreamId stream;
  std::uint64_t sequence;
  cudaEvent_t event;
  bool passed = false;
};

// For each stream the newest mark; marks that have been passed are left out.
class Fence {
 public:
  void add(const std::shared_ptr<Mark>& mark);
  void add(const Fence& other);
  void clear() { marks_.clear(); }
  const std::vector<std::shared_ptr<Mark>>& marks() const { return marks_; }
  // All work has been done, asked of the device.
  bool passed();
  // All work that may not be done yet is on this stream.
  bool only_on(StreamId stream) const;

 private:
  std::vector<std::shared_ptr<Mark>> marks_;
};

// Names a stream as the program does. Stream 0 means the legacy stream or the calling thread's own, by the kind of
// function called.
struct StreamName {
  cudaStream_t handle;
  bool per_thread;  // the function takes 0 as the calling thread's stream
};

class Streams {
 public:
  // Before an operation on the stream: makes it wait for what is owed.
  cudaError_t before_operation(StreamName name);
  // After it: work has been issued. `touches_host`: it reads or writes host memory, or runs a host function, behind the
  // program's back.
  void after_operation(StreamName name, bool touches_host);
  // The host has waited for the stream, or for all.
  void synchronised(StreamName name);
  void all_synchronised();
  // Before the program destroys the stream: its last work is still fenced.
  cudaError_t before_destroy(cudaStream_t stream);

  // What a free must wait for, from now on. Where host-visible work is pending, waits for it first, as cudaFree does.
  cudaError_t fence(Fence& out);
  // Memory behind this fence has been handed out again.
  void owe(Fence& fence);
  // The stream that the calling thread used last.
  StreamId current() const;
  void forget_all();

  const StreamStatistics& statistics() const { return statistics_; }

 private:
  struct Key {
    std::uintptr_t handle;
    std::uint64_t thread;  // 0 unless it is a thread's own stream
    auto operator<=>(const Key&) const = default;
  };
  struct State {
    StreamId id = 0;
    cudaStream_t handle = nullptr;
    std::uint64_t thread = 0;
    bool unmarked_work = false;  // issued since `last`
    bool host_visible = false;
    std::shared_ptr<Mark> last;
    std::map<StreamId, std::uint64_t> waited;  // newest sequence waited for, by stream
    std::uint64_t owed_seen = 0;
  };

  static Key key_of(StreamName name);
  State& state_of(StreamName name);
  cudaError_t mark(State& state);
  std::shared_ptr<Mark> make_mark(StreamId stream);

  std::map<Key, State> states_;
  std::vector<std::shared_ptr<Mark>> destroyed_;  // last marks of destroyed streams
  std::map<StreamId, std::shared_ptr<Mark>> owed_;
  std::uint64_t owed_version_ = 0;
  StreamId next_id_ = 1;
  std::uint64_t next_sequence_ = 1;
  std::shared_ptr<std::vector<cudaEvent_t>> spare_events_ = std::make_shared<std::vector<cudaEvent_t>>();
  StreamStatistics statistics_;
};

}  // namespace caching_pool
