// What the hooks tell the agent about queued work, before the driver is called: which blocks an operation touches, on
// which stream. It orders the operation behind former owners of the bytes (arena.h) and records it (recorder.h).
//
// Any thread; noexcept; a few nanoseconds when there is neither a block nor a recording. Errno is kept.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "agent/memory/arena.h"
#include "agent/memory/arena_streams.h"
#include "agent/memory/points.h"
#include "agent/order/captures.h"
#include "agent/order/in_flight.h"
#include "agent/order/streams.h"
#include "agent/process/clean_stack.h"
#include "agent/recording/device_times.h"
#include "agent/recording/recorder.h"
#include "shm/record.h"

namespace memopt::agent {

struct LaunchCall {
  CUfunction function = nullptr;  // or a CUkernel in its clothes
  unsigned int grid[3] = {1, 1, 1};
  unsigned int block[3] = {1, 1, 1};
  unsigned int shared_bytes = 0;
  StreamName stream{};
  void** parameters = nullptr;     // kernelParams
  void** extra = nullptr;          // CU_LAUNCH_PARAM_BUFFER_POINTER, ...
  bool overlaps_previous = false;  // programmatic dependent launch: stream order is no order
};
// True: the launch must not overlap the kernel before it (LaunchCall::overlaps_previous), because it names blocks of
// ours, whose bytes that kernel may still be using on behalf of a former owner.
bool before_launch(const LaunchCall& call) noexcept;

// A copy or part of one. A side that is no device memory of ours is 0 (`to`, `from`), whatever its kind; `to_host` and
// `from_host` are the host's pointers, if the side is the host's.
struct CopyCall {
  shm::CopyKind kind = shm::CopyKind::kUnknown;
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  const void* from_host = nullptr;
  void* to_host = nullptr;
  std::size_t bytes = 0;      // of payload
  std::size_t to_extent = 0;  // from first to last byte touched; equals bytes unless pitched
  std::size_t from_extent = 0;
  StreamName stream{};
  bool host_waits = false;  // the call returns after the copy
};
void before_copy(const CopyCall& call) noexcept;

struct MemsetCall {
  std::uint64_t address = 0;
  std::size_t bytes = 0;  // extent
  StreamName stream{};
  std::uint32_t value = 0;  // of words of four bytes, where each row has one of them at most; else 0
};
void before_memset(const MemsetCall& call) noexcept;

// cuLaunchHostFunc, cuStreamAddCallback.
void before_host_function(StreamName stream) noexcept;

// Anything that is queued and may touch any block: counts as using all of them.
void before_unknown_work(StreamName stream) noexcept;

// An executable graph is launched: it uses what its nodes name (graph_uses.h), and all blocks where that is not known.
void before_graph(CUgraphExec graph, StreamName stream) noexcept;

// An address is given away to where no launch shows it: a texture, a tensor map, another process.
void note_escape(std::uint64_t address) noexcept;

// The driver has refused to share it with another process: if it is memory of ours, that is said once.
void note_not_shared(std::uint64_t address) noexcept;

// Captures that are open anywhere. What is queued on a capturing stream is not executed: it has no place in any order,
// and the blocks that it names stay with the graph.
void before_capture(CUstream stream) noexcept;
void capture_ended(CUstream stream) noexcept;
// At the beginning of a hook that announces operations: they are queued when it ends.
class QueuedAtEnd {
 public:
  QueuedAtEnd() = default;
  ~QueuedAtEnd() {
    const CleanStack clean(arena_has_limit());
    if (scans_due) [[unlikely]] {
      // Not measured with the launch.
      operation_queued();
      queue_due_scans();
    }
    queued();
    operation_queued();
    look_for_points();
  }
  // Makes the call, unless there is no memory for what it touches; what is said of it, for the hook to hand on.
  template <typename Call>
  CUresult made(const Call& call) const noexcept {
    const CUresult refused = take_refusal();
    return ended(refused == CUDA_SUCCESS ? call() : refused);
  }
  // What the driver said, for the hook to hand on.
  CUresult ended(CUresult result) const noexcept {
    if (result != CUDA_SUCCESS) [[unlikely]] {
      forget_operation();
      if (scans_due) forget_due_scans();
      note_failure(result);
    }
    return result;
  }
  QueuedAtEnd(const QueuedAtEnd&) = delete;
  QueuedAtEnd& operator=(const QueuedAtEnd&) = delete;
};

// Is there anybody who wants to know? If not, a hook may spare itself the work of describing the call.
bool operations_are_watched() noexcept;

void forget_operations_after_fork() noexcept;

}  // namespace memopt::agent
