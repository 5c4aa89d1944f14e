// Copies of plain ranges. Entry points without suffix take stream 0 as the legacy stream, _ptds and _ptsz ones as the
// per-thread stream.
#define __CUDA_API_VERSION_INTERNAL
#include "api/copy_request.h"
#include "contexts.h"

using namespace cudasim;

namespace {

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

struct Kinds {
  Operand to;
  Operand from;
};
constexpr Kinds kIn{Operand::kDevice, Operand::kHost};
constexpr Kinds kOut{Operand::kHost, Operand::kDevice};
constexpr Kinds kWithin{Operand::kDevice, Operand::kDevice};
constexpr Kinds kAny{Operand::kAny, Operand::kAny};

CopyRequest linear(const CallSite& site, Kinds kinds, std::uintptr_t to, std::uintptr_t from, std::size_t size) {
  CopyRequest request;
  request.symbol = site.symbol;
  request.shape = {size, 1, 1};
  request.to = packed(to, request.shape);
  request.from = packed(from, request.shape);
  request.to_kind = kinds.to;
  request.from_kind = kinds.from;
  return request;
}

CUresult copy(CallSite& site, StreamMode mode, Kinds kinds, std::uintptr_t to, std::uintptr_t from, std::size_t size) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    CopyRequest request = linear(site, kinds, to, from, size);
    request.mode = mode;
    request.synchronous = true;
    return queue_copy(driver, context, request);
  });
}

CUresult copy_async(CallSite& site, StreamMode mode, Kinds kinds, std::uintptr_t to, std::uintptr_t from,
                    std::size_t size, CUstream stream) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    CopyRequest request = linear(site, kinds, to, from, size);
    request.mode = mode;
    request.stream = stream;
    return queue_copy(driver, context, request);
  });
}

// The one device is its own peer. Order between contexts is that of the current context's stream.
CUresult copy_peer(CallSite& site, StreamMode mode, std::uintptr_t to, CUcontext to_context, std::uintptr_t from,
                   CUcontext from_context, std::size_t size, CUstream stream, bool synchronous) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    for (const CUcontext handle : {to_context, from_context}) {
      const Context* peer = driver.contexts->find(handle);
      if (peer == nullptr || !peer->alive) return CUDA_ERROR_INVALID_CONTEXT;
    }
    CopyRequest request = linear(site, kWithin, to, from, size);
    request.mode = mode;
    request.stream = stream;
    request.synchronous = synchronous;
    return queue_copy(driver, context, request);
  });
}

struct Batch {
  CUdeviceptr* to;
  CUdeviceptr* from;
  std::size_t* sizes;
  std::size_t count;
  CUmemcpyAttributes* attributes;
  std::size_t* attribute_indices;
  std::size_t attribute_count;
};

CUresult check_batch(const Batch& batch, CUstream stream, StreamMode mode) {
  const bool legacy = stream == CU_STREAM_LEGACY || (stream == nullptr && mode == StreamMode::kLegacy);
  if (legacy) return CUDA_ERROR_INVALID_VALUE;
  if (batch.to == nullptr || batch.from == nullptr || batch.sizes == nullptr || batch.count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (batch.attributes == nullptr || batch.attribute_indices == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (batch.attribute_count == 0 || batch.attribute_count > batch.count) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < batch.attribute_count; ++i) {
    const CUmemcpySrcAccessOrder order = batch.attributes[i].srcAccessOrder;
    if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
      return CUDA_ERROR_INVALID_VALUE;
    const std::size_t least = i == 0 ? 0 : batch.attribute_indices[i - 1] + 1;
    const bool in_order = i == 0 ? batch.attribute_indices[0] == 0 : batch.attribute_indices[i] >= least;
    if (!in_order || batch.attribute_indices[i] >= batch.count) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// One copy after the other: one of the orders that the program must be ready for. A source that may only be read during
// the call is waited for.
CUresult copy_batch(CallSite& site, StreamMode mode, const Batch& batch, CUstream stream, std::size_t* failed) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (failed != nullptr) *failed = SIZE_MAX;
    if (const CUresult result = check_batch(batch, stream, mode); result != CUDA_SUCCESS) return result;
    bool wait = false;
    for (std::size_t i = 0, attribute = 0; i < batch.count; ++i) {
      if (attribute + 1 < batch.attribute_count && batch.attribute_indices[attribute + 1] == i) ++attribute;
      CopyRequest request = linear(site, kAny, batch.to[i], batch.from[i], batch.sizes[i]);
      request.mode = mode;
      request.stream = stream;
      if (const CUresult result = queue_copy(driver, context, request); result != CUDA_SUCCESS) {
        if (failed != nullptr) *failed = i;
        return result;
      }
      wait |= batch.attributes[attribute].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    }
    return wait ? driver.engine.wait(*driver.engine.find_stream(context, stream, mode)) : CUDA_SUCCESS;
  });
}

}  // namespace

CUDASIM_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  static CallSite site{"cuMemcpy"};
  return copy(site, StreamMode::kLegacy, kAny, to, from, size);
}
CUDASIM_API cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
  static CallSite site{"cuMemcpy_ptds"};
  return copy(site, StreamMode::kPerThread, kAny, to, from, size);
}
CUDASIM_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyAsync"};
  return copy_async(site, StreamMode::kLegacy, kAny, to, from, size, stream);
}
CUDASIM_API cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyAsync_ptsz"};
  return copy_async(site, StreamMode::kPerThread, kAny, to, from, size, stream);
}

CUDASIM_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  static CallSite site{"cuMemcpyHtoD_v2"};
  return copy(site, StreamMode::kLegacy, kIn, to, address(from), size);
}
CUDASIM_API cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t size) {
  static CallSite site{"cuMemcpyHtoD_v2_ptds"};
  return copy(site, StreamMode::kPerThread, kIn, to, address(from), size);
}
CUDASIM_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyHtoDAsync_v2"};
  return copy_async(site, StreamMode::kLegacy, kIn, to, address(from), size, stream);
}
CUDASIM_API cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyHtoDAsync_v2_ptsz"};
  return copy_async(site, StreamMode::kPerThread, kIn, to, address(from), size, stream);
}

CUDASIM_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  static CallSite site{"cuMemcpyDtoH_v2"};
  return copy(site, StreamMode::kLegacy, kOut, address(to), from, size);
}
CUDASIM_API cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t size) {
  static CallSite site{"cuMemcpyDtoH_v2_ptds"};
  return copy(site, StreamMode::kPerThread, kOut, address(to), from, size);
}
CUDASIM_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyDtoHAsync_v2"};
  return copy_async(site, StreamMode::kLegacy, kOut, address(to), from, size, stream);
}
CUDASIM_API cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyDtoHAsync_v2_ptsz"};
  return copy_async(site, StreamMode::kPerThread, kOut, address(to), from, size, stream);
}

CUDASIM_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  static CallSite site{"cuMemcpyDtoD_v2"};
  return copy(site, StreamMode::kLegacy, kWithin, to, from, size);
}
CUDASIM_API cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
  static CallSite site{"cuMemcpyDtoD_v2_ptds"};
  return copy(site, StreamMode::kPerThread, kWithin, to, from, size);
}
CUDASIM_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyDtoDAsync_v2"};
  return copy_async(site, StreamMode::kLegacy, kWithin, to, from, size, stream);
}
CUDASIM_API cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyDtoDAsync_v2_ptsz"};
  return copy_async(site, StreamMode::kPerThread, kWithin, to, from, size, stream);
}

CUDASIM_API cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size) {
  static CallSite site{"cuMemcpyPeer"};
  return copy_peer(site, StreamMode::kLegacy, to, to_context, from, from_context, size, nullptr, true);
}
CUDASIM_API cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t size) {
  static CallSite site{"cuMemcpyPeer_ptds"};
  return copy_peer(site, StreamMode::kPerThread, to, to_context, from, from_context, size, nullptr, true);
}
CUDASIM_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyPeerAsync"};
  return copy_peer(site, StreamMode::kLegacy, to, to_context, from, from_context, size, stream, false);
}
CUDASIM_API cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   size_t size, CUstream stream) {
  static CallSite site{"cuMemcpyPeerAsync_ptsz"};
  return copy_peer(site, StreamMode::kPerThread, to, to_context, from, from_context, size, stream, false);
}

CUDASIM_API cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                  CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                                  CUstream stream) {
  static CallSite site{"cuMemcpyBatchAsync_v2"};
  return copy_batch(site, StreamMode::kLegacy, {to, from, sizes, count, attributes, indices, attribute_count}, stream,
                    nullptr);
}
CUDASIM_API cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                       CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                                       CUstream stream) {
  static CallSite site{"cuMemcpyBatchAsync_v2_ptsz"};
  return copy_batch(site, StreamMode::kPerThread, {to, from, sizes, count, attributes, indices, attribute_count},
                    stream, nullptr);
}
CUDASIM_API cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count, size_t* failed,
                               CUstream stream) {
  static CallSite site{"cuMemcpyBatchAsync"};
  return copy_batch(site, StreamMode::kLegacy, {to, from, sizes, count, attributes, indices, attribute_count}, stream,
                    failed);
}
CUDASIM_API cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                    CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                                    size_t* failed, CUstream stream) {
  static CallSite site{"cuMemcpyBatchAsync_ptsz"};
  return copy_batch(site, StreamMode::kPerThread, {to, from, sizes, count, attributes, indices, attribute_count},
                    stream, failed);
}

// The first ABI, with 32-bit addresses and sizes: such an address names no device memory, which is an error unless the
// size is 0.

CUDASIM_API cuMemcpyHtoD(CUdeviceptr_v1 to, const void* from, unsigned int size) {
  static CallSite site{"cuMemcpyHtoD"};
  return copy(site, StreamMode::kLegacy, kIn, to, address(from), size);
}
CUDASIM_API cuMemcpyDtoH(void* to, CUdeviceptr_v1 from, unsigned int size) {
  static CallSite site{"cuMemcpyDtoH"};
  return copy(site, StreamMode::kLegacy, kOut, address(to), from, size);
}
CUDASIM_API cuMemcpyDtoD(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int size) {
  static CallSite site{"cuMemcpyDtoD"};
  return copy(site, StreamMode::kLegacy, kWithin, to, from, size);
}
CUDASIM_API cuMemcpyHtoDAsync(CUdeviceptr_v1 to, const void* from, unsigned int size, CUstream stream) {
  static CallSite site{"cuMemcpyHtoDAsync"};
  return copy_async(site, StreamMode::kLegacy, kIn, to, address(from), size, stream);
}
CUDASIM_API cuMemcpyDtoHAsync(void* to, CUdeviceptr_v1 from, unsigned int size, CUstream stream) {
  static CallSite site{"cuMemcpyDtoHAsync"};
  return copy_async(site, StreamMode::kLegacy, kOut, address(to), from, size, stream);
}
CUDASIM_API cuMemcpyDtoDAsync(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int size, CUstream stream) {
  static CallSite site{"cuMemcpyDtoDAsync"};
  return copy_async(site, StreamMode::kLegacy, kWithin, to, from, size, stream);
}
