// Inside of the engine, for device/*.cpp and for api/stream.cpp, api/event.cpp.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checker/vector_clock.h"
#include "config.h"
#include "counters.h"
#include "device/bytes.h"
#include "device/callback_thread.h"
#include "device/engine.h"
#include "device/event.h"
#include "device/host_threads.h"
#include "device/stream.h"
#include "device/timeline.h"
#include "device/timeline_file.h"

namespace cudasim {

using StreamPtr = std::shared_ptr<Stream>;
using EventPtr = std::shared_ptr<Event>;

struct ContextState {
  CUresult sticky = CUDA_SUCCESS;
  StreamPtr legacy;
  std::map<std::uint64_t, StreamPtr> per_thread;  // by number of the host thread
  std::vector<StreamPtr> streams;                 // all of them; destroyed ones until their work has run
};

struct Engine::Impl {
  Impl(const Config& config, Counters& counters, Checker& checker, std::mutex& driver_mutex);
  ~Impl();

  // --- events (CUevent API)
  // ---------------------------------------------------------------------------------------------
  CUresult create_event(ContextId context, unsigned flags, CUevent* out);
  CUresult destroy_event(CUevent handle);
  EventPtr find_event(CUevent handle) const;  // null when it is no live event
  void record(Event& event, Stream& stream);
  void wait_event(Stream& stream, const Event& event);  // later work of the stream waits for what the event records now
  CUresult synchronize(const Event& event);
  CUresult query(const Event& event);
  CUresult elapsed(const Event& start, const Event& end, Duration* out);

  // --- stream-ordered memory (stream_order.cpp)
  // -------------------------------------------------------------------------------------------------------------
  // What an operation queued on the stream now would be ordered behind: for each actor the sequence of its last
  // operation that is. From the first track_order() on.
  void track_order() { order_tracked = true; }
  VectorClock order_of_next(const Stream& stream) const;
  // An operation that takes no time, on the stream and behind `behind`. It runs after `ran_before` too, which is no
  // edge that a program may rely on.
  OperationPtr queue_marker(Stream& stream, Work work, const std::vector<OperationPtr>& behind,
                            const std::vector<OperationPtr>& ran_before);
  // The host has waited for it (or asked and been told that it is over).
  bool host_has_waited_for(const Operation& operation) const {
    return synchronized.of(operation.actor) >= operation.sequence;
  }

  // For the checker: an operation that the host should have waited for and has not is brought to run, so that what it
  // conflicts with is found in whatever order bytes change.
  void show_unless_known(const OperationPtr& operation);

  // --- shared
  // ----------------------------------------------------------------------------------------------------------- What
  // every call does first: the calling thread has a clock, and host accesses so far are checked.
  HostThread& enter();
  void advance(HostThread& thread);  // device up to the thread's clock
  StreamPtr make_stream(ContextId context, StreamKind kind, CUstream handle, unsigned flags, int priority);
  OperationPtr make_operation(Stream& stream, Work work, HostThread& thread);
  void submit(Stream& stream, const OperationPtr& operation, const std::vector<OperationPtr>& extra,
              const std::vector<OperationPtr>& ran_before = {});
  std::vector<OperationPtr> predecessors(const Stream& stream) const;  // of what is queued next
  std::vector<OperationPtr> tails(
      const Stream& stream) const;  // what the stream's completion means, legacy rule included
  std::vector<OperationPtr> tails(ContextId context) const;
  CUresult wait(HostThread& thread, ContextId context, std::vector<OperationPtr> targets);
  CUresult query(HostThread& thread, ContextId context, const std::vector<OperationPtr>& targets);
  void wait_for_room(Stream& stream, HostThread& thread);
  void check_host_accesses();
  void host_learns(const Operation& operation);
  void host_waited(const Operation& operation);
  void retire(Operation& operation);
  void purge_streams(ContextState& context);
  void pace();
  CUresult sticky(ContextId context) const;

  const Config& config;
  Counters& counters;
  Checker& checker;
  std::mutex& driver_mutex;

  HostThreads threads;
  std::map<ContextId, ContextState> contexts;
  std::unordered_map<CUstream, StreamPtr> streams;  // created and not destroyed
  std::unordered_map<CUevent, EventPtr> events;
  std::uint64_t next_stream = 1, next_event = 1, next_sequence = 1;

  // All host threads are one actor: how the program orders them among themselves can't be seen from here, so that calls
  // and accesses of different threads count as ordered the way they happened. Conservative: races between host threads
  // are not looked for.
  ActorId host_actor{};
  VectorClock host_clock;
  std::vector<std::pair<ActorId, std::uint64_t>> free_actors;  // of purged streams, with their last step

  TimePoint seen_to_end{};  // by some host thread, of work that it has waited for or asked about

  bool order_tracked = false;
  VectorClock synchronized;  // as Operation::order: what the host has waited for

  std::unordered_map<std::uint64_t, OperationPtr> live;  // not timed or not run
  CallbackThread callbacks;
  ByteRunner bytes;
  TimelineFile timeline_file;
  Timeline timeline;
  const std::chrono::steady_clock::time_point wall_start = std::chrono::steady_clock::now();
};

}  // namespace cudasim
