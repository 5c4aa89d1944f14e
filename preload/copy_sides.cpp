#include "preload/copy_sides.h"

#include "agent/memory/arena.h"
#include "agent/operations/pinned_memory.h"

namespace memopt::preload {
namespace {

CUresult memory_type_of(std::uint64_t address, unsigned int* type) noexcept {
  return real<Hook::cuPointerGetAttribute>()(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
}

// Whose memory an address is: what the driver does not know is the host's.
CopySide::Kind kind_of(std::uint64_t address) noexcept {
  if (agent::arena_may_own(address)) return CopySide::Kind::kDevice;
  unsigned int type = CU_MEMORYTYPE_HOST;
  if (memory_type_of(address, &type) != CUDA_SUCCESS) return CopySide::Kind::kHost;
  return type == CU_MEMORYTYPE_HOST ? CopySide::Kind::kHost : CopySide::Kind::kDevice;
}

}  // namespace

agent::CopyCall describe_copy(const CopySide& to, const CopySide& from, std::size_t bytes, agent::StreamName stream,
                              bool host_waits) noexcept {
  // An address that the caller calls the host's may be the device's: drivers take it, and we must not read it. Asked
  // only where it matters.
  const auto kind = [](const CopySide& side, bool matters) {
    const bool ask = side.kind == CopySide::Kind::kUnified || (side.kind == CopySide::Kind::kHost && matters);
    return ask && side.address != 0 ? kind_of(side.address) : side.kind;
  };
  const CopySide::Kind to_kind = kind(to, false);
  const CopySide::Kind from_kind = kind(from, true);
  const bool to_is_host = to_kind == CopySide::Kind::kHost && !agent::arena_may_own(to.address);
  const bool from_is_host = from_kind == CopySide::Kind::kHost;

  agent::CopyCall call;
  call.kind = to_is_host ? shm::CopyKind::kToHost : from_is_host ? shm::CopyKind::kToDevice : shm::CopyKind::kOnDevice;
  call.bytes = bytes;
  call.to_extent = to.extent != 0 ? to.extent : bytes;
  call.from_extent = from.extent != 0 ? from.extent : bytes;
  call.stream = stream;
  call.host_waits = host_waits && to_is_host;
  if (to_is_host) {
    call.to_host = reinterpret_cast<void*>(to.address);
  } else {
    if (agent::arena_may_own(to.address)) call.to = to.address;
    // Device memory that the host can look into.
    if (agent::is_pinned_memory(to.address)) call.to_host = reinterpret_cast<void*>(to.address);
  }
  if (from_is_host) {
    call.from_host = reinterpret_cast<const void*>(from.address);
  } else if (agent::arena_may_own(from.address)) {
    call.from = from.address;
  }
  return call;
}

}  // namespace memopt::preload
