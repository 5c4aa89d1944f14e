// What a copy does, in the agent's words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/operations/operations.h"
#include "agent/process/uncancellable.h"
#include "preload/typed_hooks.h"

namespace memopt::preload {

// One side of a copy, as the program names it.
struct CopySide {
  enum class Kind {
    kDevice,
    kHost,
    kUnified,  // an address of either; the driver knows which
    kArray,    // has no address
  };
  Kind kind = Kind::kUnified;
  std::uint64_t address = 0;
  std::size_t extent = 0;  // from first to last byte; 0: as many as are copied
};

inline CopySide device_side(CUdeviceptr address) noexcept { return {CopySide::Kind::kDevice, address, 0}; }
inline CopySide host_side(const void* address) noexcept {
  return {CopySide::Kind::kHost, reinterpret_cast<std::uint64_t>(address), 0};
}
inline CopySide unified_side(CUdeviceptr address) noexcept { return {CopySide::Kind::kUnified, address, 0}; }
inline CopySide array_side() noexcept { return {CopySide::Kind::kArray, 0, 0}; }

// Both sides of a copy with a shape, with the payload's bytes; none of an empty one.
struct CopyShape {
  CopySide to;
  CopySide from;
  std::size_t bytes = 0;
};
CopyShape shape_of(const CUDA_MEMCPY2D& copy) noexcept;
CopyShape shape_of(const CUDA_MEMCPY3D& copy) noexcept;
CopyShape shape_of(const CUDA_MEMCPY3D_PEER& copy) noexcept;

// Tells the agent, if it listens. `host_waits`: the call returns after the copy, if one side is the host's.
agent::CopyCall describe_copy(const CopySide& to, const CopySide& from, std::size_t bytes, agent::StreamName stream,
                              bool host_waits) noexcept;

// A copy that is queued.
template <Hook hook, typename... Arguments>
CUresult queue_copy(const CopySide& to, const CopySide& from, std::size_t bytes, agent::StreamName stream,
                    Arguments... arguments) noexcept {
  const agent::QueuedAtEnd scope;
  if (agent::operations_are_watched()) agent::before_copy(describe_copy(to, from, bytes, stream, false));
  return scope.made([&] { return real<hook>()(arguments...); });
}

// A copy whose call comes back when the host may look. Only to the host that means that it was done, and with it all
// that was queued before it on the default stream.
template <Hook hook, typename... Arguments>
CUresult copy_now(const CopySide& to, const CopySide& from, std::size_t bytes, bool per_thread,
                  Arguments... arguments) noexcept {
  const agent::Uncancellable uncancellable;
  if (!agent::operations_are_watched()) return real<hook>()(arguments...);
  const agent::StreamName stream{nullptr, per_thread};
  const agent::CopyCall call = describe_copy(to, from, bytes, stream, true);
  const agent::QueuedAtEnd scope;
  agent::before_copy(call);
  const bool waits = call.to_host != nullptr && bytes != 0;
  agent::HostWait wait;
  if (waits) wait = agent::begin_host_wait_for_own(stream);
  const CUresult result = scope.made([&] { return real<hook>()(arguments...); });
  if (waits && result == CUDA_SUCCESS) agent::host_wait_done(wait);
  return result;
}

}  // namespace memopt::preload
