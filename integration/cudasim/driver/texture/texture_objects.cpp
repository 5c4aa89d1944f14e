#include "texture/texture_objects.h"

#include <algorithm>

#include "driver.h"
#include "ptx/execution/texture.h"
#include "texture/arrays.h"

namespace cudasim {
namespace {

ptx::TextureLevel level_of(const Array& array) {
  const CUDA_ARRAY3D_DESCRIPTOR& d = array.description;
  return {array.base,
          array.pitch,
          array.slice,
          static_cast<std::uint32_t>(d.Width),
          static_cast<std::uint32_t>(array.rows()),
          static_cast<std::uint32_t>(array.slices())};
}

void set_format(ptx::Texture& texture, CUarray_format format, unsigned channels) {
  texture.channel_bytes = channel_bytes(format);
  texture.channels = channels;
  texture.kind = format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT ? ptx::ChannelKind::kFloat
                 : format >= CU_AD_FORMAT_SIGNED_INT8                        ? ptx::ChannelKind::kSigned
                                                                             : ptx::ChannelKind::kUnsigned;
}

// Of linear memory: all of it in live blocks.
CUresult set_linear(Driver& driver, ptx::Texture& texture, CUdeviceptr base, CUarray_format format, unsigned channels,
                    std::uint64_t width, std::uint64_t height, std::uint64_t pitch) {
  if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
  const std::uint32_t bytes = element_bytes(format, channels);
  if (bytes == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (width == 0 || height == 0 || base % bytes != 0 || width > UINT32_MAX || height > UINT32_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  if (height > 1 && (pitch < width * bytes || pitch > UINT32_MAX)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t size = (height - 1) * pitch + width * bytes;
  if (!driver.memory.is_device_range(base, size) &&
      !driver.memory.is_pinned_range(reinterpret_cast<const void*>(base), size))
    return CUDA_ERROR_INVALID_VALUE;
  set_format(texture, format, channels);
  texture.levels = {{base, pitch, 0, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 1}};
  return CUDA_SUCCESS;
}

CUresult set_resource(Driver& driver, const CUDA_RESOURCE_DESC& r, ptx::Texture& texture) {
  switch (r.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const Array* const array = driver.arrays->find(r.res.array.hArray);
      if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      set_format(texture, array->description.Format, array->description.NumChannels);
      texture.levels = {level_of(*array)};
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const MipmappedArray* const array = driver.arrays->find(r.res.mipmap.hMipmappedArray);
      if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      const CUDA_ARRAY3D_DESCRIPTOR& d = array->levels.front()->description;
      set_format(texture, d.Format, d.NumChannels);
      for (const auto& level : array->levels) texture.levels.push_back(level_of(*level));
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& l = r.res.linear;
      const std::uint32_t bytes = element_bytes(l.format, l.numChannels);
      if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
      texture.fetched = true;
      return set_linear(driver, texture, l.devPtr, l.format, l.numChannels, l.sizeInBytes / bytes, 1, 0);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& p = r.res.pitch2D;
      return set_linear(driver, texture, p.devPtr, p.format, p.numChannels, p.width, p.height, p.pitchInBytes);
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_description(const CUDA_TEXTURE_DESC& d, ptx::Texture& texture) {
  constexpr unsigned kFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                              CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
  if ((d.flags & ~kFlags) != 0 || d.filterMode > CU_TR_FILTER_MODE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
  for (int axis = 0; axis < 3; ++axis) {
    if (d.addressMode[axis] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    texture.modes[axis] = static_cast<ptx::AddressMode>(d.addressMode[axis]);
  }
  // 32-bit integers are read as they are, whatever is asked for.
  texture.reads_integers = texture.kind != ptx::ChannelKind::kFloat &&
                           ((d.flags & CU_TRSF_READ_AS_INTEGER) != 0 || texture.channel_bytes == 4);
  texture.linear = d.filterMode == CU_TR_FILTER_MODE_LINEAR;
  if (texture.linear && texture.reads_integers) return CUDA_ERROR_INVALID_VALUE;
  texture.linear_levels = d.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  texture.normalized = (d.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  if (texture.levels.size() > 1 && !texture.normalized) return CUDA_ERROR_INVALID_VALUE;
  texture.srgb = (d.flags & CU_TRSF_SRGB) != 0;
  std::ranges::copy(d.borderColor, texture.border);
  texture.level_bias = d.mipmapLevelBias;
  texture.least_level = d.minMipmapLevelClamp;
  texture.most_level = d.maxMipmapLevelClamp;
  return CUDA_SUCCESS;
}

// A view may narrow levels; another format over the same bytes is not part of this device.
CUresult set_view(const CUDA_RESOURCE_VIEW_DESC& view, ptx::Texture& texture) {
  if (view.firstMipmapLevel > view.lastMipmapLevel || view.lastMipmapLevel >= texture.levels.size())
    return CUDA_ERROR_INVALID_VALUE;
  if (view.firstLayer != 0) return CUDA_ERROR_NOT_SUPPORTED;
  texture.levels.resize(view.lastMipmapLevel + 1);
  texture.levels.erase(texture.levels.begin(), texture.levels.begin() + view.firstMipmapLevel);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult TextureObjects::create(Driver& driver, const TextureObject& object, std::uint64_t* handle) {
  ptx::Texture texture;
  if (const CUresult bad = set_resource(driver, object.resource, texture); bad != CUDA_SUCCESS) return bad;
  texture.is_surface = object.is_surface;
  if (object.is_surface) {
    if (object.resource.resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    const Array* const array = driver.arrays->find(object.resource.res.array.hArray);
    // Levels of mipmapped arrays are written without the flag by NVIDIA's own samples (bindlessTexture).
    if (!array->is_level && (array->description.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
      return CUDA_ERROR_INVALID_VALUE;
  } else if (const CUresult bad = set_description(object.description, texture); bad != CUDA_SUCCESS) {
    return bad;
  }
  if (object.view) {
    if (const CUresult bad = set_view(*object.view, texture); bad != CUDA_SUCCESS) return bad;
  }
  *handle = ptx::add_texture(texture);
  objects_.emplace(*handle, object);
  return CUDA_SUCCESS;
}

const TextureObject* TextureObjects::find(std::uint64_t handle, bool is_surface) const {
  const auto found = objects_.find(handle);
  return found == objects_.end() || found->second.is_surface != is_surface ? nullptr : &found->second;
}

CUresult TextureObjects::destroy(std::uint64_t handle, bool is_surface) {
  if (find(handle, is_surface) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ptx::remove_texture(handle);
  objects_.erase(handle);
  return CUDA_SUCCESS;
}

void TextureObjects::release_context(ContextId context) {
  std::erase_if(objects_, [&](const auto& one) {
    if (one.second.context != context) return false;
    ptx::remove_texture(one.first);
    return true;
  });
}

}  // namespace cudasim
