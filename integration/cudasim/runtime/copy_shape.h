#pragma once

// The runtime's rectangles and boxes as the driver wants them. CUDA arrays are not supported.

#include <cuda.h>
#include <driver_types.h>

#include "call.h"

namespace cudart {

struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
};

inline Side make_side(const void* address, bool on_device, bool unified) {
  if (unified) return {CU_MEMORYTYPE_UNIFIED, nullptr, device_pointer(address)};
  if (on_device) return {CU_MEMORYTYPE_DEVICE, nullptr, device_pointer(address)};
  return {CU_MEMORYTYPE_HOST, address, 0};
}

inline Side source_side(const void* address, cudaMemcpyKind kind) {
  return make_side(address, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice,
                   kind == cudaMemcpyDefault);
}

inline Side target_side(const void* address, cudaMemcpyKind kind) {
  return make_side(address, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
                   kind == cudaMemcpyDefault);
}

inline bool is_known(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

inline cudaError_t describe(CUDA_MEMCPY3D* copy, const cudaMemcpy3DParms* parameters) {
  if (!parameters) return cudaErrorInvalidValue;
  if (parameters->srcArray || parameters->dstArray) return cudaErrorNotSupported;
  if (!is_known(parameters->kind)) return cudaErrorInvalidMemcpyDirection;
  const cudaPitchedPtr& from = parameters->srcPtr;
  const cudaPitchedPtr& to = parameters->dstPtr;
  if (from.pitch < parameters->extent.width || to.pitch < parameters->extent.width) return cudaErrorInvalidPitchValue;
  const Side source = source_side(from.ptr, parameters->kind);
  const Side target = target_side(to.ptr, parameters->kind);
  *copy = {};
  copy->srcXInBytes = parameters->srcPos.x;
  copy->srcY = parameters->srcPos.y;
  copy->srcZ = parameters->srcPos.z;
  copy->srcMemoryType = source.type;
  copy->srcHost = source.host;
  copy->srcDevice = source.device;
  copy->srcPitch = from.pitch;
  copy->srcHeight = from.ysize;
  copy->dstXInBytes = parameters->dstPos.x;
  copy->dstY = parameters->dstPos.y;
  copy->dstZ = parameters->dstPos.z;
  copy->dstMemoryType = target.type;
  copy->dstHost = const_cast<void*>(target.host);
  copy->dstDevice = target.device;
  copy->dstPitch = to.pitch;
  copy->dstHeight = to.ysize;
  copy->WidthInBytes = parameters->extent.width;
  copy->Height = parameters->extent.height;
  copy->Depth = parameters->extent.depth;
  return cudaSuccess;
}

}  // namespace cudart
