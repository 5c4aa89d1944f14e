// Hooks of calls that put an address where no launch shows it: textures, tensor maps, other processes, and values that
// a stream writes; and of work whose addresses are not read here.
#include "agent/operations/operations.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

void escapes(const void* address) noexcept { agent::note_escape(reinterpret_cast<std::uint64_t>(address)); }

template <Hook hook, typename Value>
CUresult write_value(CUstream stream, CUdeviceptr address, Value value, unsigned int flags, bool per_thread) noexcept {
  agent::note_escape(value);
  const agent::QueuedAtEnd scope;
  agent::before_memset({address, sizeof(value), {stream, per_thread}});
  return scope.made([&] { return real<hook>()(stream, address, value, flags); });
}

// Many lists of addresses, which are the driver's to read.
template <Hook hook, typename Operations>
CUresult decompress(Operations* operations, size_t count, unsigned int flags, size_t* wrong, CUstream stream,
                    bool per_thread) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_unknown_work({stream, per_thread});
  return scope.made([&] { return real<hook>()(operations, count, flags, wrong, stream); });
}

// A list of waits and writes, some of which order memory rather than touch it: as if anything were touched.
template <Hook hook, typename Operations>
CUresult batch(CUstream stream, unsigned int count, Operations* operations, unsigned int flags,
               bool per_thread) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_unknown_work({stream, per_thread});
  return scope.made([&] { return real<hook>()(stream, count, operations, flags); });
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) noexcept {
  escapes(address);
  return real<Hook::cuTensorMapEncodeTiled>()(map, type, rank, address, dimensions, strides, box, element_strides,
                                              interleave, swizzle, promotion, fill);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* dimensions, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill) noexcept {
  escapes(address);
  return real<Hook::cuTensorMapEncodeIm2col>()(map, type, rank, address, dimensions, strides, lower, upper, channels,
                                               pixels, element_strides, interleave, swizzle, promotion, fill);
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                     const cuuint64_t* dimensions, const cuuint64_t* strides, int lower, int upper,
                                     cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
                                     CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
                                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                     CUtensorMapFloatOOBfill fill) noexcept {
  escapes(address);
  return real<Hook::cuTensorMapEncodeIm2colWide>()(map, type, rank, address, dimensions, strides, lower, upper,
                                                   channels, pixels, element_strides, interleave, mode, swizzle,
                                                   promotion, fill);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) noexcept {
  escapes(address);
  return real<Hook::cuTensorMapReplaceAddress>()(map, address);
}

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* description, const CUDA_RESOURCE_VIEW_DESC* view) noexcept {
  const bool watched = resource != nullptr && agent::operations_are_watched();
  if (watched && resource->resType == CU_RESOURCE_TYPE_LINEAR) {
    agent::note_escape(resource->res.linear.devPtr);
  }
  if (watched && resource->resType == CU_RESOURCE_TYPE_PITCH2D) {
    agent::note_escape(resource->res.pitch2D.devPtr);
  }
  return real<Hook::cuTexObjectCreate>()(texture, resource, description, view);
}

CUresult cuTexRefSetAddress_v2(size_t* offset, CUtexref texture, CUdeviceptr address, size_t bytes) noexcept {
  agent::note_escape(address);
  return real<Hook::cuTexRefSetAddress_v2>()(offset, texture, address, bytes);
}

CUresult cuTexRefSetAddress2D_v3(CUtexref texture, const CUDA_ARRAY_DESCRIPTOR* description, CUdeviceptr address,
                                 size_t pitch) noexcept {
  agent::note_escape(address);
  return real<Hook::cuTexRefSetAddress2D_v3>()(texture, description, address, pitch);
}

CUresult cuTexRefSetAddress2D_v2(CUtexref texture, const CUDA_ARRAY_DESCRIPTOR* description, CUdeviceptr address,
                                 size_t pitch) noexcept {
  agent::note_escape(address);
  return real<Hook::cuTexRefSetAddress2D_v2>()(texture, description, address, pitch);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) noexcept {
  agent::note_escape(address);
  const CUresult result = real<Hook::cuIpcGetMemHandle>()(handle, address);
  if (result != CUDA_SUCCESS) agent::note_not_shared(address);
  return result;
}

// Another device or process gets at the bytes by the handle.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long flags) noexcept {
  agent::note_escape(address);
  if (bytes > 1) agent::note_escape(address + (bytes - 1));
  return real<Hook::cuMemGetHandleForAddressRange>()(handle, address, bytes, type, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue32>(stream, address, value, flags, false);
}

CUresult cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                   unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue32_ptsz>(stream, address, value, flags, true);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue32_v2>(stream, address, value, flags, false);
}

CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                      unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue32_v2_ptsz>(stream, address, value, flags, true);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue64>(stream, address, value, flags, false);
}

CUresult cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                   unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue64_ptsz>(stream, address, value, flags, true);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue64_v2>(stream, address, value, flags, false);
}

CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                      unsigned int flags) noexcept {
  return write_value<Hook::cuStreamWriteValue64_v2_ptsz>(stream, address, value, flags, true);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                            unsigned int flags) noexcept {
  return batch<Hook::cuStreamBatchMemOp>(stream, count, operations, flags, false);
}

CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                                 unsigned int flags) noexcept {
  return batch<Hook::cuStreamBatchMemOp_ptsz>(stream, count, operations, flags, true);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                               unsigned int flags) noexcept {
  return batch<Hook::cuStreamBatchMemOp_v2>(stream, count, operations, flags, false);
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                                    unsigned int flags) noexcept {
  return batch<Hook::cuStreamBatchMemOp_v2_ptsz>(stream, count, operations, flags, true);
}

CUresult cuMemBatchDecompressAsync(CUmemDecompressParams* operations, size_t count, unsigned int flags, size_t* wrong,
                                   CUstream stream) noexcept {
  return decompress<Hook::cuMemBatchDecompressAsync>(operations, count, flags, wrong, stream, false);
}

CUresult cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams* operations, size_t count, unsigned int flags,
                                        size_t* wrong, CUstream stream) noexcept {
  return decompress<Hook::cuMemBatchDecompressAsync_ptsz>(operations, count, flags, wrong, stream, true);
}

}  // namespace memopt::preload::hooks
