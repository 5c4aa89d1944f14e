// Copies of rectangles and boxes in linear memory. CUDA arrays are not supported.

#include "api.h"
#include "call.h"

using namespace cudart;

namespace {

struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
};

Side make_side(const void* address, bool on_device, bool unified) {
  if (unified) return {CU_MEMORYTYPE_UNIFIED, nullptr, device_pointer(address)};
  if (on_device) return {CU_MEMORYTYPE_DEVICE, nullptr, device_pointer(address)};
  return {CU_MEMORYTYPE_HOST, address, 0};
}

Side source_side(const void* address, cudaMemcpyKind kind) {
  return make_side(address, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice,
                   kind == cudaMemcpyDefault);
}

Side target_side(const void* address, cudaMemcpyKind kind) {
  return make_side(address, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
                   kind == cudaMemcpyDefault);
}

bool is_known(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

cudaError_t describe(CUDA_MEMCPY2D* copy, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                     size_t height, cudaMemcpyKind kind) {
  if (!is_known(kind)) return cudaErrorInvalidMemcpyDirection;
  if (to_pitch < width || from_pitch < width) return cudaErrorInvalidPitchValue;
  const Side source = source_side(from, kind);
  const Side target = target_side(to, kind);
  *copy = {};
  copy->srcMemoryType = source.type;
  copy->srcHost = source.host;
  copy->srcDevice = source.device;
  copy->srcPitch = from_pitch;
  copy->dstMemoryType = target.type;
  copy->dstHost = const_cast<void*>(target.host);
  copy->dstDevice = target.device;
  copy->dstPitch = to_pitch;
  copy->WidthInBytes = width;
  copy->Height = height;
  return cudaSuccess;
}

cudaError_t describe(CUDA_MEMCPY3D* copy, const cudaMemcpy3DParms* parameters) {
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

}  // namespace

cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy;
  if (const cudaError_t error = describe(&copy, dst, dpitch, src, spitch, width, height, kind); error != cudaSuccess) {
    return record(error);
  }
  if (!width || !height) return record(enter_context());
  // The unaligned form takes any pitch, as the runtime's callers expect.
  return call_context<&DriverTable::cuMemcpy2DUnaligned>(kDefaultStream, static_cast<const CUDA_MEMCPY2D*>(&copy));
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_MEMCPY2D copy;
  if (const cudaError_t error = describe(&copy, dst, dpitch, src, spitch, width, height, kind); error != cudaSuccess) {
    return record(error);
  }
  if (!width || !height) return record(enter_context());
  return call_context<&DriverTable::cuMemcpy2DAsync>(kDefaultStream, static_cast<const CUDA_MEMCPY2D*>(&copy), stream);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms* p) {
  CUDA_MEMCPY3D copy;
  if (const cudaError_t error = describe(&copy, p); error != cudaSuccess) return record(error);
  if (!copy.WidthInBytes || !copy.Height || !copy.Depth) return record(enter_context());
  return call_context<&DriverTable::cuMemcpy3D>(kDefaultStream, static_cast<const CUDA_MEMCPY3D*>(&copy));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* p, cudaStream_t stream) {
  CUDA_MEMCPY3D copy;
  if (const cudaError_t error = describe(&copy, p); error != cudaSuccess) return record(error);
  if (!copy.WidthInBytes || !copy.Height || !copy.Depth) return record(enter_context());
  return call_context<&DriverTable::cuMemcpy3DAsync>(kDefaultStream, static_cast<const CUDA_MEMCPY3D*>(&copy), stream);
}
