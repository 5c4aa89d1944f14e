// Hooks of copies with a shape (2D, 3D) and of batches of copies.
#include "preload/copy_sides.h"

namespace memopt::preload::hooks {
namespace {

template <Hook hook, typename Copy>
CUresult shaped_now(const Copy* copy, bool per_thread) noexcept {
  if (copy == nullptr || !agent::operations_are_watched()) return real<hook>()(copy);
  const CopyShape shape = shape_of(*copy);
  return copy_now<hook>(shape.to, shape.from, shape.bytes, per_thread, copy);
}

template <Hook hook, typename Copy>
CUresult queue_shaped(const Copy* copy, CUstream stream, bool per_thread) noexcept {
  if (copy == nullptr || !agent::operations_are_watched()) return real<hook>()(copy, stream);
  const CopyShape shape = shape_of(*copy);
  return queue_copy<hook>(shape.to, shape.from, shape.bytes, {stream, per_thread}, copy, stream);
}

void describe_batch(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* bytes, size_t count,
                    agent::StreamName stream) noexcept {
  if (to == nullptr || from == nullptr || bytes == nullptr || !agent::operations_are_watched()) return;
  for (size_t i = 0; i < count; ++i) {
    agent::before_copy(describe_copy(unified_side(to[i]), unified_side(from[i]), bytes[i], stream, false));
  }
  if (count > 1) agent::forget_operation();
}

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) noexcept { return shaped_now<Hook::cuMemcpy2D_v2>(copy, false); }

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) noexcept {
  return shaped_now<Hook::cuMemcpy2D_v2_ptds>(copy, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) noexcept {
  return shaped_now<Hook::cuMemcpy2DUnaligned_v2>(copy, false);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) noexcept {
  return shaped_now<Hook::cuMemcpy2DUnaligned_v2_ptds>(copy, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) noexcept {
  return queue_shaped<Hook::cuMemcpy2DAsync_v2>(copy, stream, false);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) noexcept {
  return queue_shaped<Hook::cuMemcpy2DAsync_v2_ptsz>(copy, stream, true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) noexcept { return shaped_now<Hook::cuMemcpy3D_v2>(copy, false); }

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* copy) noexcept {
  return shaped_now<Hook::cuMemcpy3D_v2_ptds>(copy, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) noexcept {
  return queue_shaped<Hook::cuMemcpy3DAsync_v2>(copy, stream, false);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream stream) noexcept {
  return queue_shaped<Hook::cuMemcpy3DAsync_v2_ptsz>(copy, stream, true);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) noexcept {
  return shaped_now<Hook::cuMemcpy3DPeer>(copy, false);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) noexcept {
  return shaped_now<Hook::cuMemcpy3DPeer_ptds>(copy, true);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) noexcept {
  return queue_shaped<Hook::cuMemcpy3DPeerAsync>(copy, stream, false);
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) noexcept {
  return queue_shaped<Hook::cuMemcpy3DPeerAsync_ptsz>(copy, stream, true);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indexes, size_t attribute_count, size_t* failed,
                            CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  describe_batch(to, from, bytes, count, {stream, false});
  return scope.made([&] {
    return real<Hook::cuMemcpyBatchAsync>()(to, from, bytes, count, attributes, indexes, attribute_count, failed,
                                            stream);
  });
}

// Operands are of many kinds, in elements or bytes: as if anything were touched.
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed, unsigned long long flags,
                              CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_unknown_work({stream, false});
  return scope.made([&] { return real<Hook::cuMemcpy3DBatchAsync>()(count, copies, failed, flags, stream); });
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indexes, size_t attribute_count,
                               CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  describe_batch(to, from, bytes, count, {stream, false});
  return scope.made([&] {
    return real<Hook::cuMemcpyBatchAsync_v2>()(to, from, bytes, count, attributes, indexes, attribute_count, stream);
  });
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags,
                                 CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_unknown_work({stream, false});
  return scope.made([&] { return real<Hook::cuMemcpy3DBatchAsync_v2>()(count, copies, flags, stream); });
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                 CUmemcpyAttributes* attributes, size_t* indexes, size_t attribute_count,
                                 size_t* failed, CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  describe_batch(to, from, bytes, count, {stream, true});
  return scope.made([&] {
    return real<Hook::cuMemcpyBatchAsync_ptsz>()(to, from, bytes, count, attributes, indexes, attribute_count, failed,
                                                 stream);
  });
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed,
                                   unsigned long long flags, CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_unknown_work({stream, true});
  return scope.made([&] { return real<Hook::cuMemcpy3DBatchAsync_ptsz>()(count, copies, failed, flags, stream); });
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                    CUmemcpyAttributes* attributes, size_t* indexes, size_t attribute_count,
                                    CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  describe_batch(to, from, bytes, count, {stream, true});
  return scope.made([&] {
    return real<Hook::cuMemcpyBatchAsync_v2_ptsz>()(to, from, bytes, count, attributes, indexes, attribute_count,
                                                    stream);
  });
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags,
                                      CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_unknown_work({stream, true});
  return scope.made([&] { return real<Hook::cuMemcpy3DBatchAsync_v2_ptsz>()(count, copies, flags, stream); });
}

}  // namespace memopt::preload::hooks
