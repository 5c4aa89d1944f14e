#include "array_format.h"

#include "call.h"

namespace cudart {
namespace {

struct Row {
  cudaChannelFormatKind kind;
  int bits;
  CUarray_format format;
};
constexpr Row kRows[] = {{cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
                         {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
                         {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
                         {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
                         {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
                         {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
                         {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
                         {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT}};

}  // namespace

bool driver_format(const cudaChannelFormatDesc& d, CUarray_format* format, unsigned* channels) {
  const int bits[] = {d.x, d.y, d.z, d.w};
  *channels = 0;
  while (*channels < 4 && bits[*channels] != 0) {
    if (bits[*channels] != d.x) return false;
    ++*channels;
  }
  for (unsigned rest = *channels; rest < 4; ++rest) {
    if (bits[rest] != 0) return false;
  }
  if (*channels == 0 || *channels == 3) return false;
  for (const Row& row : kRows) {
    if (row.kind != d.f || row.bits != d.x) continue;
    *format = row.format;
    return true;
  }
  return false;
}

cudaChannelFormatDesc channel_description(CUarray_format format, unsigned channels) {
  for (const Row& row : kRows) {
    if (row.format != format) continue;
    return {row.bits, channels > 1 ? row.bits : 0, channels > 2 ? row.bits : 0, channels > 3 ? row.bits : 0, row.kind};
  }
  return {0, 0, 0, 0, cudaChannelFormatKindNone};
}

bool describe_array(CUDA_ARRAY3D_DESCRIPTOR* out, const cudaChannelFormatDesc& description, cudaExtent extent,
                    unsigned flags) {
  static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED && cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
                cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP && cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER);
  *out = {};
  out->Width = extent.width;
  out->Height = extent.height;
  out->Depth = extent.depth;
  out->Flags = flags;
  return driver_format(description, &out->Format, &out->NumChannels);
}

size_t element_bytes(cudaArray_const_t array) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  if (ask_context<&DriverTable::cuArray3DGetDescriptor>(kDefaultStream, &d, driver_array(array)) != cudaSuccess)
    return 0;
  const cudaChannelFormatDesc channels = channel_description(d.Format, d.NumChannels);
  return static_cast<size_t>(channels.x + channels.y + channels.z + channels.w) / 8;
}

}  // namespace cudart
