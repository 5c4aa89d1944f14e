// Handles, and descriptors of tensors and filters.
#include <stdio.h>
#include <string.h>

#include "cudnn/values.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cudnn;

namespace cudasim::libraries::cudnn {

uint64_t elements(const Tensor& tensor) {
  uint64_t count = tensor.count ? 1 : 0;
  for (int i = 0; i < tensor.count; ++i) count *= static_cast<uint64_t>(tensor.size[i]);
  return count;
}

uint64_t elements(const Filter& filter) {
  uint64_t count = filter.count ? 1 : 0;
  for (int i = 0; i < filter.count; ++i) count *= static_cast<uint64_t>(filter.size[i]);
  return count;
}

bool part_of(const Tensor& tensor, const void* data, Part* out) {
  // Dimensions by falling stride; neighbours without a gap are one.
  struct Level {
    uint64_t size, stride;
  } levels[kMostDimensions];
  int count = 0;
  for (int i = 0; i < tensor.count; ++i) {
    const Level mine{static_cast<uint64_t>(tensor.size[i]), static_cast<uint64_t>(tensor.stride[i])};
    if (mine.size == 1) continue;
    int at = count++;
    for (; at > 0 && levels[at - 1].stride < mine.stride; --at) levels[at] = levels[at - 1];
    levels[at] = mine;
  }
  int merged = 0;
  for (int i = 0; i < count; ++i) {
    if (merged && levels[merged - 1].stride == levels[i].stride * levels[i].size) {
      levels[merged - 1] = {levels[merged - 1].size * levels[i].size, levels[i].stride};
    } else {
      levels[merged++] = levels[i];
    }
  }
  const uint64_t element = element_bytes(tensor.type);
  uint64_t row = element;
  if (merged && levels[merged - 1].stride == 1) row = levels[--merged].size * element;
  if (merged > 2) return false;
  Part part{const_cast<void*>(data), row, 1, row, 1, 0, 0};
  if (merged) part.rows = levels[merged - 1].size, part.pitch = levels[merged - 1].stride * element;
  if (merged == 2) part.planes = levels[0].size, part.plane_pitch = levels[0].stride * element;
  if (!elements(tensor)) part.rows = 0;
  *out = part;
  return true;
}

double scalar(const void* value, int type) {
  if (!value) return 0;
  if (type == kDouble) {
    double number;
    memcpy(&number, value, sizeof(number));
    return number;
  }
  float number;
  memcpy(&number, value, sizeof(number));
  return static_cast<double>(number);
}

}  // namespace cudasim::libraries::cudnn

extern "C" {

CUDASIM_EXPORT size_t cudnnGetVersion() { return kVersion; }
CUDASIM_EXPORT size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
CUDASIM_EXPORT size_t cudnnGetMaxDeviceVersion() { return 1200; }

CUDASIM_EXPORT int cudnnGetProperty(int type, int* value) {
  if (!value || type < 0 || type > 2) return kBadParameter;
  *value = type == 0 ? kVersion / 10000 : type == 1 ? kVersion / 100 % 100 : kVersion % 100;
  return kSuccess;
}

CUDASIM_EXPORT const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case kNotInitialized:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case kBadParameter:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNullPointer:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case kSizeInsufficient:
      return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
    case kShapeMismatch:
      return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case kHostAllocationFailed:
      return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case kExecutionFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_UNKNOWN_STATUS";
  }
}

CUDASIM_EXPORT void cudnnGetLastErrorString(char* message, size_t size) {
  if (message && size) message[0] = '\0';
}

CUDASIM_EXPORT int cudnnCreate(Handle** out) {
  if (!out) return kNullPointer;
  *out = nullptr;
  if (cudaFree(nullptr) != cudaSuccess) {
    cudaGetLastError();
    return kNotInitialized;
  }
  return create(out);
}

CUDASIM_EXPORT int cudnnDestroy(Handle* handle) { return destroy(handle); }

CUDASIM_EXPORT int cudnnSetStream(Handle* handle, cudaStream_t stream) {
  if (!handle) return kNullPointer;
  handle->stream = stream;
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetStream(Handle* handle, cudaStream_t* stream) {
  if (!handle || !stream) return kNullPointer;
  *stream = handle->stream;
  return kSuccess;
}

CUDASIM_EXPORT int cudnnCreateTensorDescriptor(Tensor** out) { return create(out); }
CUDASIM_EXPORT int cudnnDestroyTensorDescriptor(Tensor* tensor) { return destroy(tensor); }

CUDASIM_EXPORT int cudnnSetTensorNdDescriptor(Tensor* tensor, int type, int count, const int size[],
                                              const int stride[]) {
  Type known{};
  if (!tensor || !size || !stride) return kNullPointer;
  if (count < 1 || count > kMostDimensions) return kNotSupported;
  if (!type_of(type, &known)) return kNotSupported;
  for (int i = 0; i < count; ++i)
    if (size[i] <= 0 || stride[i] < 0) return kBadParameter;
  tensor->type = type;
  tensor->count = count;
  for (int i = 0; i < count; ++i) tensor->size[i] = size[i], tensor->stride[i] = stride[i];
  return kSuccess;
}

CUDASIM_EXPORT int cudnnSetTensor4dDescriptorEx(Tensor* tensor, int type, int n, int c, int h, int w, int sn, int sc,
                                                int sh, int sw) {
  const int size[] = {n, c, h, w}, stride[] = {sn, sc, sh, sw};
  return cudnnSetTensorNdDescriptor(tensor, type, 4, size, stride);
}

CUDASIM_EXPORT int cudnnSetTensor4dDescriptor(Tensor* tensor, int format, int type, int n, int c, int h, int w) {
  if (format == kChannelsLast) return cudnnSetTensor4dDescriptorEx(tensor, type, n, c, h, w, h * w * c, 1, w * c, c);
  if (format != kChannelsFirst) return kNotSupported;
  return cudnnSetTensor4dDescriptorEx(tensor, type, n, c, h, w, c * h * w, h * w, w, 1);
}

CUDASIM_EXPORT int cudnnSetTensorNdDescriptorEx(Tensor* tensor, int format, int type, int count, const int size[]) {
  if (!tensor || !size) return kNullPointer;
  if (count < 2 || count > kMostDimensions || format > kChannelsLast) return kNotSupported;
  int stride[kMostDimensions];
  int step = 1;
  if (format == kChannelsLast) stride[1] = step, step *= size[1];
  for (int i = count - 1; i >= 0; --i) {
    if (format == kChannelsLast && i == 1) continue;
    stride[i] = step;
    step *= size[i];
  }
  return cudnnSetTensorNdDescriptor(tensor, type, count, size, stride);
}

CUDASIM_EXPORT int cudnnGetTensorNdDescriptor(const Tensor* tensor, int asked, int* type, int* count, int size[],
                                              int stride[]) {
  if (!tensor || !type || !count) return kNullPointer;
  *type = tensor->type;
  *count = tensor->count;
  for (int i = 0; i < asked && i < tensor->count; ++i) {
    if (size) size[i] = tensor->size[i];
    if (stride) stride[i] = tensor->stride[i];
  }
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetTensorSizeInBytes(const Tensor* tensor, size_t* bytes) {
  if (!tensor || !bytes) return kNullPointer;
  uint64_t last = 0;
  for (int i = 0; i < tensor->count; ++i)
    last += static_cast<uint64_t>(tensor->size[i] - 1) * static_cast<uint64_t>(tensor->stride[i]);
  *bytes = tensor->count ? (last + 1) * element_bytes(tensor->type) : 0;
  return kSuccess;
}

CUDASIM_EXPORT int cudnnCreateFilterDescriptor(Filter** out) { return create(out); }
CUDASIM_EXPORT int cudnnDestroyFilterDescriptor(Filter* filter) { return destroy(filter); }

CUDASIM_EXPORT int cudnnSetFilterNdDescriptor(Filter* filter, int type, int format, int count, const int size[]) {
  Type known{};
  if (!filter || !size) return kNullPointer;
  if (count < 1 || count > kMostDimensions || !type_of(type, &known) || format > kChannelsLast) return kNotSupported;
  filter->type = type;
  filter->format = format;
  filter->count = count;
  for (int i = 0; i < count; ++i) filter->size[i] = size[i];
  return kSuccess;
}

CUDASIM_EXPORT int cudnnSetFilter4dDescriptor(Filter* filter, int type, int format, int k, int c, int h, int w) {
  const int size[] = {k, c, h, w};
  return cudnnSetFilterNdDescriptor(filter, type, format, 4, size);
}

CUDASIM_EXPORT int cudnnGetFilterNdDescriptor(const Filter* filter, int asked, int* type, int* format, int* count,
                                              int size[]) {
  if (!filter || !type || !format || !count) return kNullPointer;
  *type = filter->type;
  *format = filter->format;
  *count = filter->count;
  for (int i = 0; i < asked && i < filter->count; ++i)
    if (size) size[i] = filter->size[i];
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetFilterSizeInBytes(const Filter* filter, size_t* bytes) {
  if (!filter || !bytes) return kNullPointer;
  *bytes = elements(*filter) * element_bytes(filter->type);
  return kSuccess;
}
}
