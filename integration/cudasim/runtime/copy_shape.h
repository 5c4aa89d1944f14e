#pragma once

// The runtime's rectangles and boxes as the driver wants them.

#include <cuda.h>
#include <driver_types.h>

#include "array_format.h"
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

// Where arrays take part, widths and places are in elements: of the first array there is.
inline cudaError_t describe(CUDA_MEMCPY3D* copy, const cudaMemcpy3DParms* parameters) {
  if (!parameters) return cudaErrorInvalidValue;
  if (!is_known(parameters->kind)) return cudaErrorInvalidMemcpyDirection;
  const cudaArray_const_t array = parameters->srcArray ? parameters->srcArray : parameters->dstArray;
  size_t unit = 1;
  if (array) {
    if ((parameters->srcArray && parameters->srcPtr.ptr) || (parameters->dstArray && parameters->dstPtr.ptr))
      return cudaErrorInvalidValue;
    unit = element_bytes(array);
    if (!unit) return cudaErrorInvalidResourceHandle;
  }
  *copy = {};
  copy->WidthInBytes = parameters->extent.width * unit;
  copy->Height = parameters->extent.height;
  copy->Depth = parameters->extent.depth;
  copy->srcXInBytes = parameters->srcPos.x * (parameters->srcArray ? unit : 1);
  copy->srcY = parameters->srcPos.y;
  copy->srcZ = parameters->srcPos.z;
  if (parameters->srcArray) {
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = driver_array(parameters->srcArray);
  } else {
    const cudaPitchedPtr& from = parameters->srcPtr;
    if (from.pitch < copy->WidthInBytes) return cudaErrorInvalidPitchValue;
    const Side source = source_side(from.ptr, parameters->kind);
    copy->srcMemoryType = source.type;
    copy->srcHost = source.host;
    copy->srcDevice = source.device;
    copy->srcPitch = from.pitch;
    copy->srcHeight = from.ysize;
  }
  copy->dstXInBytes = parameters->dstPos.x * (parameters->dstArray ? unit : 1);
  copy->dstY = parameters->dstPos.y;
  copy->dstZ = parameters->dstPos.z;
  if (parameters->dstArray) {
    copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->dstArray = driver_array(parameters->dstArray);
  } else {
    const cudaPitchedPtr& to = parameters->dstPtr;
    if (to.pitch < copy->WidthInBytes) return cudaErrorInvalidPitchValue;
    const Side target = target_side(to.ptr, parameters->kind);
    copy->dstMemoryType = target.type;
    copy->dstHost = const_cast<void*>(target.host);
    copy->dstDevice = target.device;
    copy->dstPitch = to.pitch;
    copy->dstHeight = to.ysize;
  }
  return cudaSuccess;
}

}  // namespace cudart
