// Copies of rectangles and boxes in linear memory. CUDA arrays are not supported.

#include "api.h"
#include "call.h"
#include "copy_shape.h"

using namespace cudart;

namespace {

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
