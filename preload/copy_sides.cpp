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

CopySide side(CUmemorytype type, const void* host, CUdeviceptr device, std::uint64_t offset,
              std::size_t extent) noexcept {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return {CopySide::Kind::kHost, reinterpret_cast<std::uint64_t>(host) + offset, extent};
    case CU_MEMORYTYPE_DEVICE:
      return {CopySide::Kind::kDevice, device + offset, extent};
    case CU_MEMORYTYPE_UNIFIED:
      return {CopySide::Kind::kUnified, device + offset, extent};
    default:  // an array, or nothing that a driver would take
      return array_side();
  }
}

// A box within memory of that pitch and height of layers: how far it is from its first to its last byte, and from the
// memory's beginning to the box's.
struct Box {
  std::size_t width;
  std::size_t height;
  std::size_t depth;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  std::size_t extent(std::size_t pitch, std::size_t layer_height) const {
    return ((depth - 1) * layer_height + (height - 1)) * pitch + width;
  }
};

// No pitch means rows without gaps, no height layers without gaps.
std::size_t or_else(std::size_t value, std::size_t otherwise) noexcept { return value != 0 ? value : otherwise; }

template <typename Copy>
CopyShape shape_in_space(const Copy& copy) noexcept {
  const Box box{copy.WidthInBytes, copy.Height, copy.Depth};
  if (box.empty()) return {};
  const std::size_t to_pitch = or_else(copy.dstPitch, box.width);
  const std::size_t to_height = or_else(copy.dstHeight, box.height);
  const std::size_t from_pitch = or_else(copy.srcPitch, box.width);
  const std::size_t from_height = or_else(copy.srcHeight, box.height);
  return {
      side(copy.dstMemoryType, copy.dstHost, copy.dstDevice,
           (copy.dstZ * to_height + copy.dstY) * to_pitch + copy.dstXInBytes, box.extent(to_pitch, to_height)),
      side(copy.srcMemoryType, copy.srcHost, copy.srcDevice,
           (copy.srcZ * from_height + copy.srcY) * from_pitch + copy.srcXInBytes, box.extent(from_pitch, from_height)),
      box.width * box.height * box.depth};
}

}  // namespace

CopyShape shape_of(const CUDA_MEMCPY2D& copy) noexcept {
  const Box box{copy.WidthInBytes, copy.Height, 1};
  if (box.empty()) return {};
  const std::size_t to_pitch = or_else(copy.dstPitch, box.width);
  const std::size_t from_pitch = or_else(copy.srcPitch, box.width);
  return {side(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstY * to_pitch + copy.dstXInBytes,
               box.extent(to_pitch, box.height)),
          side(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcY * from_pitch + copy.srcXInBytes,
               box.extent(from_pitch, box.height)),
          box.width * box.height};
}
CopyShape shape_of(const CUDA_MEMCPY3D& copy) noexcept { return shape_in_space(copy); }
CopyShape shape_of(const CUDA_MEMCPY3D_PEER& copy) noexcept { return shape_in_space(copy); }

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
