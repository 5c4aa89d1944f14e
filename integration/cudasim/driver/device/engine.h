// The discrete-event device: streams, events, queued work, virtual clocks of host threads.
//
// Work is queued with the edges that the CUDA programming model declares (stream order, event waits, legacy stream,
// host synchronisation), and two things then happen to it independently:
//  * its times (ready, start, end) follow from the timing model: work takes its resource (one compute queue, one copy
//  engine each way)
//    in order of readiness, ties by issue order; exact and repeatable for a given order of driver calls, whatever the
//    seed;
//  * its bytes change when its pieces are run. Nominal: at its virtual end, in the order of virtual ends. With a seed:
//  at any moment that the declared edges
//    allow: each piece as early as possible (at the call that queued it) or as late as possible (when a host thread is
//    about to rely on it), chosen by the seed, unordered pieces interleaved. A missing edge so really corrupts data.
//
// Threads: every function is called with the driver's lock held, unless it says otherwise. Waiting functions may
// release it while host functions run.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "access_log.h"
#include "units.h"

namespace cudasim {

class Checker;
struct Config;
struct Counters;
class Stream;  // device/stream.h; opaque elsewhere

enum class Resource : std::uint8_t { kNone, kCompute, kCopyIn, kCopyOut, kHostFunction };

struct Work {
  std::string name;  // shown by the checker and in reports, for example "kernel gemm_nn<<<64,256>>>" or
                     // "cuMemcpyHtoDAsync 4096 bytes"
  Resource resource = Resource::kNone;
  Duration duration{0};
  std::uint32_t pieces = 1;
  // Runs piece 0 … pieces-1, each once and in ascending order, possibly with other work in between. Logs every byte
  // touched that it knows of. A result other than CUDA_SUCCESS becomes the context's sticky error.
  std::function<CUresult(std::uint32_t piece, AccessLog& log)> run{};
  // For kHostFunction: called without the driver's lock on the simulator's callback thread, instead of `run`.
  std::function<void()> host_function{};
  // After an error the context's queued work does nothing; stream callbacks, which are told of the error, are called
  // all the same.
  bool runs_after_error = false;
};

// How a CUstream argument of 0 is to be read: entry points without suffix mean the legacy stream, _ptsz/_ptds ones the
// per-thread stream.
enum class StreamMode : std::uint8_t { kLegacy, kPerThread };

class Engine {
 public:
  // `driver_mutex` is the lock that callers hold; waiting functions give it up while host functions run.
  Engine(const Config& config, Counters& counters, Checker& checker, std::mutex& driver_mutex);
  ~Engine();

  // --- host clocks
  // ------------------------------------------------------------------------------------------------------- Virtual
  // clock of the calling thread; a thread that is new starts at the latest clock of any thread.
  TimePoint host_now();
  void charge(Duration cost);  // advances the calling thread's clock by a modelled cost and lets the device catch up
  TimePoint device_now() const;
  void finish_timeline();  // CUDASIM_TIMELINE; when all work has been drained

  // --- contexts
  // ----------------------------------------------------------------------------------------------------------
  void add_context(ContextId context);
  void remove_context(ContextId context);  // waits for its work; destroys its streams and events

  // --- streams
  // -----------------------------------------------------------------------------------------------------------
  CUresult create_stream(ContextId context, unsigned flags, int priority, CUstream* out);
  CUresult destroy_stream(CUstream stream);  // work queued on it still runs
  // Null handle, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD and created handles. Null when the handle is not a live stream
  // of any context.
  Stream* find_stream(ContextId context, CUstream handle, StreamMode mode);
  ContextId context_of(const Stream& stream) const;

  // --- work
  // --------------------------------------------------------------------------------------------------------------
  void enqueue(Stream& stream, Work work);
  // The calling host thread waits until everything queued on the stream so far has ended; its clock moves there. Counts
  // a host synchronisation. Returns the context's sticky error, if any.
  CUresult wait(Stream& stream);
  CUresult wait_context(ContextId context);
  CUresult query(Stream& stream);  // CUDA_SUCCESS or CUDA_ERROR_NOT_READY at the calling thread's clock

  // --- errors
  // ------------------------------------------------------------------------------------------------------------
  CUresult sticky_error(ContextId context) const;
  // The same, told to the calling program: a context in error has stopped, so that the host then knows all its work to
  // be over.
  CUresult tell_sticky_error(ContextId context);
  void set_sticky_error(ContextId context, CUresult error);

  // --- the checker's view of the host
  // ---------------------------------------------------------------------------------------- An access by instrumented
  // host code to pinned bytes (asked with Memory::is_tracked first), outside of any piece (asked with
  // current_access_log first). Called WITHOUT the driver's lock; kept per thread and checked at the next driver call of
  // any thread.
  void host_access(const void* address, std::size_t size, bool write);
  // Bytes are given back: by the piece that is running on this thread, else by the calling host thread. Checker::forget
  // with its clock.
  void forget(const std::string& operation, std::span<const ByteRange> ranges);
  // The same for memory pools: Checker::allocate, free_in_order and reserve.
  void allocate(const std::string& operation, std::span<const ByteRange> ranges);
  void free_in_order(const std::string& operation, std::span<const ByteRange> ranges);
  void reserve(const std::string& operation, std::span<const ByteRange> ranges);

  // --- the end
  // -----------------------------------------------------------------------------------------------------------------
  // Runs everything that is queued and checks the last host accesses; host functions get `patience` of wall time. For
  // process exit.
  void drain(std::chrono::milliseconds patience = std::chrono::milliseconds(1000));
  // True on the thread that runs host functions: CUDA calls are not permitted there (CUDA_ERROR_NOT_PERMITTED). No lock
  // needed.
  static bool on_callback_thread();

  struct Impl;  // device/engine_impl.h: shared by device/*.cpp and by api/stream.cpp, api/event.cpp
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cudasim
