// Copies of rectangles from, to and between CUDA arrays.

#include "api.h"
#include "array_format.h"
#include "call.h"
#include "copy_shape.h"

using namespace cudart;

namespace {

// One side of a copy: linear memory by kind, or a place in an array.
void set_source(CUDA_MEMCPY2D& copy, const void* from, size_t pitch, cudaMemcpyKind kind) {
  const Side side = source_side(from, kind);
  copy.srcMemoryType = side.type;
  copy.srcHost = side.host;
  copy.srcDevice = side.device;
  copy.srcPitch = pitch;
}
void set_source(CUDA_MEMCPY2D& copy, cudaArray_const_t from, size_t x, size_t y) {
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = driver_array(from);
  copy.srcXInBytes = x;
  copy.srcY = y;
}
void set_target(CUDA_MEMCPY2D& copy, void* to, size_t pitch, cudaMemcpyKind kind) {
  const Side side = target_side(to, kind);
  copy.dstMemoryType = side.type;
  copy.dstHost = const_cast<void*>(side.host);
  copy.dstDevice = side.device;
  copy.dstPitch = pitch;
}
void set_target(CUDA_MEMCPY2D& copy, cudaArray_t to, size_t x, size_t y) {
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = driver_array(to);
  copy.dstXInBytes = x;
  copy.dstY = y;
}

cudaError_t run(CUDA_MEMCPY2D& copy, size_t width, size_t height) {
  if (!width || !height) return record(enter_context());
  copy.WidthInBytes = width;
  copy.Height = height;
  return call_context<&DriverTable::cuMemcpy2DUnaligned>(kDefaultStream, static_cast<const CUDA_MEMCPY2D*>(&copy));
}
cudaError_t run(CUDA_MEMCPY2D& copy, size_t width, size_t height, cudaStream_t stream) {
  if (!width || !height) return record(enter_context());
  copy.WidthInBytes = width;
  copy.Height = height;
  return call_context<&DriverTable::cuMemcpy2DAsync>(kDefaultStream, static_cast<const CUDA_MEMCPY2D*>(&copy), stream);
}

// `count` bytes as a rectangle of the array's: whole rows, or a part of one. cudaErrorInvalidValue for other counts.
cudaError_t rectangle(cudaArray_const_t array, size_t x, size_t count, size_t* width, size_t* height) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  if (const cudaError_t error =
          ask_context<&DriverTable::cuArray3DGetDescriptor>(kDefaultStream, &d, driver_array(array));
      error != cudaSuccess)
    return error;
  const cudaChannelFormatDesc c = channel_description(d.Format, d.NumChannels);
  const size_t row = d.Width * static_cast<size_t>(c.x + c.y + c.z + c.w) / 8;
  *width = count;
  *height = 1;
  if (x + count <= row) return cudaSuccess;
  *width = row;
  *height = row == 0 ? 0 : count / row;
  return x != 0 || row == 0 || count % row != 0 ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind) {
  if (!is_known(kind)) return record(cudaErrorInvalidMemcpyDirection);
  CUDA_MEMCPY2D copy{};
  set_source(copy, src, spitch, kind);
  set_target(copy, dst, wOffset, hOffset);
  return run(copy, width, height);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch,
                                     size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  if (!is_known(kind)) return record(cudaErrorInvalidMemcpyDirection);
  CUDA_MEMCPY2D copy{};
  set_source(copy, src, spitch, kind);
  set_target(copy, dst, wOffset, hOffset);
  return run(copy, width, height, stream);
}

cudaError_t cudaMemcpy2DFromArray(void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                  size_t width, size_t height, enum cudaMemcpyKind kind) {
  if (!is_known(kind)) return record(cudaErrorInvalidMemcpyDirection);
  CUDA_MEMCPY2D copy{};
  set_source(copy, src, wOffset, hOffset);
  set_target(copy, dst, dpitch, kind);
  return run(copy, width, height);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                       size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  if (!is_known(kind)) return record(cudaErrorInvalidMemcpyDirection);
  CUDA_MEMCPY2D copy{};
  set_source(copy, src, wOffset, hOffset);
  set_target(copy, dst, dpitch, kind);
  return run(copy, width, height, stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                     size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height,
                                     enum cudaMemcpyKind kind) {
  if (!is_known(kind)) return record(cudaErrorInvalidMemcpyDirection);
  CUDA_MEMCPY2D copy{};
  set_source(copy, src, wOffsetSrc, hOffsetSrc);
  set_target(copy, dst, wOffsetDst, hOffsetDst);
  return run(copy, width, height);
}

cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                              enum cudaMemcpyKind kind) {
  size_t width = 0, height = 0;
  if (const cudaError_t error = rectangle(dst, wOffset, count, &width, &height); error != cudaSuccess)
    return record(error);
  return cudaMemcpy2DToArray(dst, wOffset, hOffset, src, width, width, height, kind);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                                   enum cudaMemcpyKind kind, cudaStream_t stream) {
  size_t width = 0, height = 0;
  if (const cudaError_t error = rectangle(dst, wOffset, count, &width, &height); error != cudaSuccess)
    return record(error);
  return cudaMemcpy2DToArrayAsync(dst, wOffset, hOffset, src, width, width, height, kind, stream);
}

cudaError_t cudaMemcpyFromArray(void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                enum cudaMemcpyKind kind) {
  size_t width = 0, height = 0;
  if (const cudaError_t error = rectangle(src, wOffset, count, &width, &height); error != cudaSuccess)
    return record(error);
  return cudaMemcpy2DFromArray(dst, width, src, wOffset, hOffset, width, height, kind);
}

cudaError_t cudaMemcpyFromArrayAsync(void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                     enum cudaMemcpyKind kind, cudaStream_t stream) {
  size_t width = 0, height = 0;
  if (const cudaError_t error = rectangle(src, wOffset, count, &width, &height); error != cudaSuccess)
    return record(error);
  return cudaMemcpy2DFromArrayAsync(dst, width, src, wOffset, hOffset, width, height, kind, stream);
}
