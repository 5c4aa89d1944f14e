// CUDA arrays and mipmapped arrays. Copies of them are in streamed/.

#include "api.h"
#include "array_format.h"
#include "call.h"

using namespace cudart;

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const struct cudaChannelFormatDesc* desc, struct cudaExtent extent,
                              unsigned int flags) {
  if (!array || !desc) return record(cudaErrorInvalidValue);
  CUDA_ARRAY3D_DESCRIPTOR description;
  if (!describe_array(&description, *desc, extent, flags)) return record(cudaErrorInvalidChannelDescriptor);
  CUarray made = nullptr;
  const cudaError_t error = ask_context<&DriverTable::cuArray3DCreate>(
      kDefaultStream, &made, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&description));
  if (error == cudaSuccess) *array = reinterpret_cast<cudaArray_t>(made);
  return record(error);
}

cudaError_t cudaMallocArray(cudaArray_t* array, const struct cudaChannelFormatDesc* desc, size_t width, size_t height,
                            unsigned int flags) {
  return cudaMalloc3DArray(array, desc, {width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  if (!array) return record(enter_context());
  return call_context<&DriverTable::cuArrayDestroy>(kDefaultStream, driver_array(array));
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc* desc, struct cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  const cudaError_t error = ask_context<&DriverTable::cuArray3DGetDescriptor>(kDefaultStream, &d, driver_array(array));
  if (error != cudaSuccess) return record(error);
  if (desc) *desc = channel_description(d.Format, d.NumChannels);
  if (extent) *extent = {d.Width, d.Height, d.Depth};
  if (flags) *flags = d.Flags;
  return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  if (!desc) return record(cudaErrorInvalidValue);
  return cudaArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* mipmappedArray, const struct cudaChannelFormatDesc* desc,
                                     struct cudaExtent extent, unsigned int numLevels, unsigned int flags) {
  if (!mipmappedArray || !desc) return record(cudaErrorInvalidValue);
  CUDA_ARRAY3D_DESCRIPTOR description;
  if (!describe_array(&description, *desc, extent, flags)) return record(cudaErrorInvalidChannelDescriptor);
  CUmipmappedArray made = nullptr;
  const cudaError_t error = ask_context<&DriverTable::cuMipmappedArrayCreate>(
      kDefaultStream, &made, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&description), numLevels);
  if (error == cudaSuccess) *mipmappedArray = reinterpret_cast<cudaMipmappedArray_t>(made);
  return record(error);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* levelArray, cudaMipmappedArray_const_t mipmappedArray,
                                       unsigned int level) {
  if (!levelArray) return record(cudaErrorInvalidValue);
  CUarray found = nullptr;
  const cudaError_t error = ask_context<&DriverTable::cuMipmappedArrayGetLevel>(
      kDefaultStream, &found, reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(mipmappedArray)),
      level);
  if (error == cudaSuccess) *levelArray = reinterpret_cast<cudaArray_t>(found);
  return record(error);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray) {
  if (!mipmappedArray) return record(enter_context());
  return call_context<&DriverTable::cuMipmappedArrayDestroy>(kDefaultStream,
                                                             reinterpret_cast<CUmipmappedArray>(mipmappedArray));
}
