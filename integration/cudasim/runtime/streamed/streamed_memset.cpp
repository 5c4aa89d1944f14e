// Filling memory with a byte.

#include "api.h"
#include "call.h"

using namespace cudart;

namespace {

// A box is one rectangle where its slices lie back to back, else one rectangle a slice.
template <typename FillRows>
cudaError_t fill_box(cudaPitchedPtr box, cudaExtent extent, FillRows fill_rows) {
  if (!extent.width || !extent.height || !extent.depth) return enter_context();
  if (box.pitch < extent.width) return cudaErrorInvalidPitchValue;
  if (extent.height > box.ysize && extent.depth > 1) return cudaErrorInvalidValue;
  if (extent.depth == 1 || extent.height == box.ysize) return fill_rows(box.ptr, extent.height * extent.depth);
  for (size_t slice = 0; slice < extent.depth; ++slice) {
    void* start = static_cast<char*>(box.ptr) + slice * box.pitch * box.ysize;
    if (const cudaError_t error = fill_rows(start, extent.height); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

unsigned char byte_of(int value) { return static_cast<unsigned char>(value); }

}  // namespace

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  if (!count) return record(enter_context());
  return call_context<&DriverTable::cuMemsetD8>(kDefaultStream, device_pointer(devPtr), byte_of(value), count);
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  if (!count) return record(enter_context());
  return call_context<&DriverTable::cuMemsetD8Async>(kDefaultStream, device_pointer(devPtr), byte_of(value), count,
                                                     stream);
}

cudaError_t cudaMemset2D(void* devPtr, size_t pitch, int value, size_t width, size_t height) {
  if (!width || !height) return record(enter_context());
  if (height > 1 && pitch < width) return record(cudaErrorInvalidPitchValue);
  return call_context<&DriverTable::cuMemsetD2D8>(kDefaultStream, device_pointer(devPtr), pitch, byte_of(value), width,
                                                  height);
}

cudaError_t cudaMemset2DAsync(void* devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  if (!width || !height) return record(enter_context());
  if (height > 1 && pitch < width) return record(cudaErrorInvalidPitchValue);
  return call_context<&DriverTable::cuMemsetD2D8Async>(kDefaultStream, device_pointer(devPtr), pitch, byte_of(value),
                                                       width, height, stream);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent) {
  return record(fill_box(pitchedDevPtr, extent, [&](void* start, size_t rows) {
    return ask_context<&DriverTable::cuMemsetD2D8>(kDefaultStream, device_pointer(start), pitchedDevPtr.pitch,
                                                   byte_of(value), extent.width, rows);
  }));
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                              cudaStream_t stream) {
  return record(fill_box(pitchedDevPtr, extent, [&](void* start, size_t rows) {
    return ask_context<&DriverTable::cuMemsetD2D8Async>(kDefaultStream, device_pointer(start), pitchedDevPtr.pitch,
                                                        byte_of(value), extent.width, rows, stream);
  }));
}
