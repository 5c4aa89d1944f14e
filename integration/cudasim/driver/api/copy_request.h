// From a copy or set as the program asked for it to queued work: which memory is named, what is an error at the call,
// which engine does it, how long it takes and whether the host waits. One table of rules for all entry points, from
// "API synchronization behavior" in NVIDIA's documentation:
//
//   from      to        on          duration                             host
//   device    device    compute     kernel latency + 2 bytes/memory rate  never waits (unless SYNC_MEMOPS)
//   pinned    device    copy in     in latency + bytes/in rate            waits in synchronous forms
//   device    pinned    copy out    out latency + bytes/out rate          waits in synchronous forms
//   pageable  device    copy in     to 64 KiB: staged at the call (bytes/pageable rate on the host's clock), then as
//   pinned, no wait
//                                   above: in latency + bytes/pageable rate, waits
//   device    pageable  copy out    out latency + bytes/pageable rate     always waits
//   host      host      no engine   bytes/pageable rate                   always waits
//   set       device    compute     kernel latency + bytes/memory rate    never waits (unless SYNC_MEMOPS)
//   set       pinned    compute     kernel latency + bytes/out rate       waits in synchronous forms
//
// For files in api/, under the driver's lock.
#pragma once
#include "api/call.h"
#include "memory/transfer.h"

namespace cudasim {

inline constexpr std::uint64_t kStagedBytes = 64u << 10;

// What an operand may be. The typed entry points take pinned memory for a device address (unified addressing) but not
// the other way round.
enum class Operand { kHost, kDevice, kAny };

struct CopyRequest {
  const char* symbol;
  Rows to;
  Rows from;
  Shape shape;
  Operand to_kind = Operand::kAny;
  Operand from_kind = Operand::kAny;
  CUstream stream = nullptr;
  StreamMode mode = StreamMode::kLegacy;
  bool synchronous = false;
  bool in_graph = false;  // of a node: no staging at the call, no waiting
};
// Of the structure of cuMemcpy3D (api/copy_shaped.cpp): where from and where to.
CUresult request_of(Driver& driver, const CUDA_MEMCPY3D& copy, CopyRequest& request);
CUresult queue_copy(Driver& driver, ContextId context, const CopyRequest& request);

struct SetRequest {
  const char* symbol;
  Rows to;
  Shape shape;  // width in bytes
  std::uint32_t pattern = 0;
  unsigned pattern_size = 1;
  CUstream stream = nullptr;
  StreamMode mode = StreamMode::kLegacy;
  bool synchronous = false;
};
CUresult queue_set(Driver& driver, ContextId context, const SetRequest& request);

}  // namespace cudasim
