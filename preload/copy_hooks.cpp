// Hooks of copies of one piece: between host and device, within the device, to and from arrays, between devices.
#include "preload/copy_sides.h"

namespace memopt::preload::hooks {
namespace {

agent::StreamName on(CUstream stream) noexcept { return {stream, false}; }
agent::StreamName on_ptsz(CUstream stream) noexcept { return {stream, true}; }

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpy>(unified_side(to), unified_side(from), bytes, false, to, from, bytes);
}

CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpy_ptds>(unified_side(to), unified_side(from), bytes, true, to, from, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyAsync>(unified_side(to), unified_side(from), bytes, on(stream), to, from, bytes,
                                         stream);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyAsync_ptsz>(unified_side(to), unified_side(from), bytes, on_ptsz(stream), to, from,
                                              bytes, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyHtoD_v2>(device_side(to), host_side(from), bytes, false, to, from, bytes);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyHtoD_v2_ptds>(device_side(to), host_side(from), bytes, true, to, from, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyHtoDAsync_v2>(device_side(to), host_side(from), bytes, on(stream), to, from, bytes,
                                                stream);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyHtoDAsync_v2_ptsz>(device_side(to), host_side(from), bytes, on_ptsz(stream), to, from,
                                                     bytes, stream);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyDtoH_v2>(host_side(to), device_side(from), bytes, false, to, from, bytes);
}

CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyDtoH_v2_ptds>(host_side(to), device_side(from), bytes, true, to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyDtoHAsync_v2>(host_side(to), device_side(from), bytes, on(stream), to, from, bytes,
                                                stream);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyDtoHAsync_v2_ptsz>(host_side(to), device_side(from), bytes, on_ptsz(stream), to, from,
                                                     bytes, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyDtoD_v2>(device_side(to), device_side(from), bytes, false, to, from, bytes);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyDtoD_v2_ptds>(device_side(to), device_side(from), bytes, true, to, from, bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyDtoDAsync_v2>(device_side(to), device_side(from), bytes, on(stream), to, from, bytes,
                                                stream);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyDtoDAsync_v2_ptsz>(device_side(to), device_side(from), bytes, on_ptsz(stream), to,
                                                     from, bytes, stream);
}

CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyDtoA_v2>(array_side(), device_side(from), bytes, false, to, offset, from, bytes);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyDtoA_v2_ptds>(array_side(), device_side(from), bytes, true, to, offset, from, bytes);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyAtoD_v2>(device_side(to), array_side(), bytes, false, to, from, offset, bytes);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyAtoD_v2_ptds>(device_side(to), array_side(), bytes, true, to, from, offset, bytes);
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyHtoA_v2>(array_side(), host_side(from), bytes, false, to, offset, from, bytes);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray to, size_t offset, const void* from, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyHtoA_v2_ptds>(array_side(), host_side(from), bytes, true, to, offset, from, bytes);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyHtoAAsync_v2>(array_side(), host_side(from), bytes, on(stream), to, offset, from,
                                                bytes, stream);
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray to, size_t offset, const void* from, size_t bytes,
                                   CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyHtoAAsync_v2_ptsz>(array_side(), host_side(from), bytes, on_ptsz(stream), to, offset,
                                                     from, bytes, stream);
}

CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyAtoH_v2>(host_side(to), array_side(), bytes, false, to, from, offset, bytes);
}

CUresult cuMemcpyAtoH_v2_ptds(void* to, CUarray from, size_t offset, size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyAtoH_v2_ptds>(host_side(to), array_side(), bytes, true, to, from, offset, bytes);
}

CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyAtoHAsync_v2>(host_side(to), array_side(), bytes, on(stream), to, from, offset, bytes,
                                                stream);
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyAtoHAsync_v2_ptsz>(host_side(to), array_side(), bytes, on_ptsz(stream), to, from,
                                                     offset, bytes, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyPeer>(device_side(to), device_side(from), bytes, false, to, to_context, from,
                                      from_context, bytes);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes) noexcept {
  return copy_now<Hook::cuMemcpyPeer_ptds>(device_side(to), device_side(from), bytes, true, to, to_context, from,
                                           from_context, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyPeerAsync>(device_side(to), device_side(from), bytes, on(stream), to, to_context,
                                             from, from_context, bytes, stream);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t bytes, CUstream stream) noexcept {
  return queue_copy<Hook::cuMemcpyPeerAsync_ptsz>(device_side(to), device_side(from), bytes, on_ptsz(stream), to,
                                                  to_context, from, from_context, bytes, stream);
}

}  // namespace memopt::preload::hooks
