#define __CUDA_API_VERSION_INTERNAL
#include "api/copy_request.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graphs.h"
#include "memory/memory_impl.h"

namespace cudasim {
namespace {

enum class Place { kInvalid, kDevice, kPinned, kPageable };

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

Place place_of(const Memory& memory, const Rows& rows, const Shape& shape) {
  const std::optional<std::uint64_t> size = extent_of(rows, shape);
  if (!size || rows.base == 0 || rows.base + *size < rows.base) return Place::kInvalid;
  if (memory.is_device_range(rows.base, *size)) return Place::kDevice;
  if (memory.is_pinned_range(pointer(rows.base), *size)) return Place::kPinned;
  // In the device's or the driver's own range, but freed, unmapped or beyond the end; or registered, but only in part.
  if (memory.is_tracked(pointer(rows.base))) return Place::kInvalid;
  return Place::kPageable;
}

bool allowed(Place place, Operand operand) {
  if (place == Place::kInvalid) return false;
  if (operand == Operand::kHost) return place != Place::kDevice;
  if (operand == Operand::kDevice) return place != Place::kPageable;
  return true;
}

// A host address may be managed memory's.
bool allowed(const Memory& memory, Place place, Operand operand, std::uintptr_t base) {
  if (allowed(place, operand)) return true;
  const Allocation* const block = place == Place::kDevice ? memory.find_allocation(base) : nullptr;
  return block != nullptr && block->managed;
}

bool wants_synchronous_operations(Memory& memory, std::uintptr_t address) {
  Memory::Impl& impl = memory.impl();
  if (const Allocation* block = impl.blocks.find(address)) return block->sync_memops;
  if (const VirtualMemory::Mapping* mapping = impl.vmm.find_mapping(address)) return mapping->sync_memops;
  const PinnedBlock* pinned = memory.find_pinned(pointer(address));
  return pinned != nullptr && pinned->sync_memops;
}

struct Plan {
  Resource resource;
  Duration duration;
  bool waits;
  bool staged;
};

Plan plan_copy(const DeviceModel& device, Place to, Place from, std::uint64_t bytes, bool synchronous) {
  if (to == Place::kDevice && from == Place::kDevice) {
    return {Resource::kCompute, device.kernel_latency + transfer_time(2 * bytes, device.memory_bytes_per_ns), false,
            false};
  }
  if (to == Place::kDevice) {
    const bool pinned = from == Place::kPinned;
    const bool staged = !pinned && bytes <= kStagedBytes;
    const double rate = pinned || staged ? device.in_bytes_per_ns : device.pageable_bytes_per_ns;
    return {Resource::kCopyIn, device.in_latency + transfer_time(bytes, rate), pinned ? synchronous : !staged, staged};
  }
  if (from == Place::kDevice) {
    const bool pinned = to == Place::kPinned;
    const double rate = pinned ? device.out_bytes_per_ns : device.pageable_bytes_per_ns;
    return {Resource::kCopyOut, device.out_latency + transfer_time(bytes, rate), synchronous || !pinned, false};
  }
  return {Resource::kNone, transfer_time(bytes, device.pageable_bytes_per_ns), true, false};
}

CUresult result_of(Outcome outcome, bool& host_fault) {
  if (outcome == Outcome::kDeviceFault) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (outcome == Outcome::kHostFault) host_fault = true;  // a bad host pointer is the call's error, not the device's
  return CUDA_SUCCESS;
}

CUresult finish(Driver& driver, Stream& stream, bool waits, const std::shared_ptr<bool>& host_fault) {
  if (!waits) return CUDA_SUCCESS;
  const CUresult result = driver.engine.wait(stream);
  return result == CUDA_SUCCESS && *host_fault ? CUDA_ERROR_INVALID_VALUE : result;
}

// What captures have against it.
CUresult allow(Driver& driver, Stream& stream, bool synchronous) {
  Captures& captures = driver.graphs->captures;
  if (!synchronous) return captures.use(stream);
  if (const CUresult bad = captures.wait_for(stream); bad != CUDA_SUCCESS) return bad;
  return captures.unsafe_call();
}

void set_side(CUmemorytype& type, const void*& host, CUdeviceptr& device, std::size_t& pitch, std::size_t& height,
              const Rows& rows, const Shape& shape, bool on_device) {
  type = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  if (on_device) {
    device = rows.base;
  } else {
    host = pointer(rows.base);
  }
  pitch = rows.pitch != 0 ? rows.pitch : shape.width;
  height = rows.slice != 0 ? rows.slice / pitch : shape.height;
}

// A node instead; none where the stream is not captured.
std::optional<CUresult> capture_copy(Driver& driver, Stream& stream, const CopyRequest& request, bool to_device,
                                     bool from_device) {
  if (stream.capture == nullptr) return std::nullopt;
  CUDA_MEMCPY3D copy{};
  const void* to_host = nullptr;
  copy.WidthInBytes = request.shape.width;
  copy.Height = request.shape.height;
  copy.Depth = request.shape.depth;
  set_side(copy.dstMemoryType, to_host, copy.dstDevice, copy.dstPitch, copy.dstHeight, request.to, request.shape,
           to_device);
  copy.dstHost = const_cast<void*>(to_host);
  set_side(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcPitch, copy.srcHeight, request.from, request.shape,
           from_device);
  driver.graphs->captures.add(stream, CopyNode{copy, nullptr});
  return CUDA_SUCCESS;
}

std::optional<CUresult> capture_fill(Driver& driver, Stream& stream, const SetRequest& request) {
  if (stream.capture == nullptr) return std::nullopt;
  FillNode node{};
  node.fill.dst = request.to.base;
  node.fill.pitch = request.to.pitch;
  node.fill.value = request.pattern;
  node.fill.elementSize = request.pattern_size;
  node.fill.width = request.shape.width / request.pattern_size;
  node.fill.height = request.shape.height;
  driver.graphs->captures.add(stream, node);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult queue_copy(Driver& driver, ContextId context, const CopyRequest& request) {
  Stream* stream = driver.engine.find_stream(context, request.stream, request.mode);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult bad = allow(driver, *stream, request.synchronous); bad != CUDA_SUCCESS) return bad;
  const Shape shape = request.shape;
  if (shape.width == 0 || shape.height == 0 || shape.depth == 0) return CUDA_SUCCESS;

  const Place to = place_of(driver.memory, request.to, shape);
  const Place from = place_of(driver.memory, request.from, shape);
  if (!allowed(driver.memory, to, request.to_kind, request.to.base) ||
      !allowed(driver.memory, from, request.from_kind, request.from.base))
    return CUDA_ERROR_INVALID_VALUE;

  const std::uint64_t bytes = shape.bytes();
  if (const auto captured = capture_copy(driver, *stream, request, to == Place::kDevice, from == Place::kDevice))
    return *captured;
  Plan plan = plan_copy(driver.config.device, to, from, bytes, request.synchronous);
  if (request.synchronous && !plan.waits) {
    plan.waits = wants_synchronous_operations(driver.memory, request.to.base) ||
                 wants_synchronous_operations(driver.memory, request.from.base);
  }

  if (request.in_graph) plan.waits = plan.staged = false;

  Rows source = request.from;
  std::shared_ptr<std::vector<std::byte>> staging;
  if (plan.staged) {
    staging = std::make_shared<std::vector<std::byte>>(bytes);
    const Rows staged = packed(reinterpret_cast<std::uintptr_t>(staging->data()), shape);
    if (copy_piece(driver.memory, staged, source, shape, {0, 1}, nullptr) != Outcome::kDone)
      return CUDA_ERROR_INVALID_VALUE;
    source = staged;
    driver.engine.charge(transfer_time(bytes, driver.config.device.pageable_bytes_per_ns));
  }

  ++driver.counters.totals.copies;
  if (to == Place::kDevice && from != Place::kDevice) driver.counters.totals.bytes_copied_in += bytes;
  if (from == Place::kDevice && to != Place::kDevice) driver.counters.totals.bytes_copied_out += bytes;

  const auto host_fault = std::make_shared<bool>(false);
  Work work;
  work.name = std::string(request.symbol) + " " + std::to_string(bytes) + " bytes";
  work.resource = plan.resource;
  work.duration = plan.duration;
  work.pieces = pieces_of(bytes);
  work.run = [&memory = driver.memory, to = request.to, source, shape, count = work.pieces, staging, host_fault](
                 std::uint32_t piece, AccessLog& log) {
    return result_of(copy_piece(memory, to, source, shape, {piece, count}, &log), *host_fault);
  };
  driver.engine.enqueue(*stream, std::move(work));
  return finish(driver, *stream, plan.waits, host_fault);
}

CUresult queue_set(Driver& driver, ContextId context, const SetRequest& request) {
  Stream* stream = driver.engine.find_stream(context, request.stream, request.mode);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult bad = allow(driver, *stream, request.synchronous); bad != CUDA_SUCCESS) return bad;
  const Shape shape = request.shape;
  if (shape.width == 0 || shape.height == 0 || shape.depth == 0) return CUDA_SUCCESS;
  if (request.to.base % request.pattern_size != 0) return CUDA_ERROR_INVALID_VALUE;
  if (shape.height > 1 && request.to.pitch % request.pattern_size != 0) return CUDA_ERROR_INVALID_VALUE;

  const Place to = place_of(driver.memory, request.to, shape);
  if (!allowed(to, Operand::kDevice)) return CUDA_ERROR_INVALID_VALUE;
  if (const auto captured = capture_fill(driver, *stream, request)) return *captured;
  const DeviceModel& device = driver.config.device;
  const double rate = to == Place::kDevice ? device.memory_bytes_per_ns : device.out_bytes_per_ns;
  const bool waits =
      request.synchronous && (to == Place::kPinned || wants_synchronous_operations(driver.memory, request.to.base));

  const std::uint64_t bytes = shape.bytes();
  const auto host_fault = std::make_shared<bool>(false);
  Work work;
  work.name = std::string(request.symbol) + " " + std::to_string(bytes) + " bytes";
  work.resource = Resource::kCompute;
  work.duration = device.kernel_latency + transfer_time(bytes, rate);
  work.pieces = pieces_of(bytes);
  work.run = [&memory = driver.memory, request, count = work.pieces, host_fault](std::uint32_t piece, AccessLog& log) {
    return result_of(
        set_piece(memory, request.to, request.shape, request.pattern, request.pattern_size, {piece, count}, log),
        *host_fault);
  };
  driver.engine.enqueue(*stream, std::move(work));
  return finish(driver, *stream, waits, host_fault);
}

}  // namespace cudasim
