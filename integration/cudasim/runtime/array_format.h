#pragma once

// Formats of CUDA arrays: the runtime's bits of four channels, the driver's format and number of channels.

#include <cuda.h>
#include <driver_types.h>

namespace cudart {

// False for what is neither integers of 8, 16 or 32 bits, nor floats of 16 or 32, in one, two or four equal channels.
bool driver_format(const cudaChannelFormatDesc& description, CUarray_format* format, unsigned* channels);
cudaChannelFormatDesc channel_description(CUarray_format format, unsigned channels);

// The description as the driver has it, and back.
bool describe_array(CUDA_ARRAY3D_DESCRIPTOR* out, const cudaChannelFormatDesc& description, cudaExtent extent,
                    unsigned flags);
// Bytes of an element of the array; 0 for what is no array.
size_t element_bytes(cudaArray_const_t array);

inline CUarray driver_array(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array));
}

}  // namespace cudart
