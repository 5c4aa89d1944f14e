#include "texture/arrays.h"

#include <algorithm>
#include <bit>

#include "memory/memory.h"

namespace cudasim {
namespace {

// From row to row, as textures on pitch-linear memory want it (CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT).
constexpr std::uint64_t kRowAlignment = 32;
constexpr std::uint64_t kMostElements = 1 << 17;  // a side, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH and its like
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;

CUresult check(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (d.Width == 0 || d.Width > kMostElements || d.Height > kMostElements || d.Depth > kMostElements)
    return CUDA_ERROR_INVALID_VALUE;
  if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4) return CUDA_ERROR_INVALID_VALUE;
  if (element_bytes(d.Format, d.NumChannels) == 0 || (d.Flags & ~kKnownFlags) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  const bool cube = (d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0, layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (cube && (d.Width != d.Height || (layered ? d.Depth == 0 || d.Depth % 6 != 0 : d.Depth != 6)))
    return CUDA_ERROR_INVALID_VALUE;
  if (layered && d.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!layered && d.Depth != 0 && d.Height == 0) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

template <class T, class Handle>
auto place_in(const std::vector<std::unique_ptr<T>>& all, Handle handle) {
  return std::ranges::find_if(all, [&](const auto& one) { return reinterpret_cast<Handle>(one.get()) == handle; });
}

}  // namespace

std::uint32_t channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

std::uint32_t element_bytes(CUarray_format format, unsigned channels) { return channel_bytes(format) * channels; }

CUresult Arrays::make(ContextId context, const CUDA_ARRAY3D_DESCRIPTOR& description, std::unique_ptr<Array>& out) {
  auto array = std::make_unique<Array>();
  array->description = description;
  array->context = context;
  const std::uint64_t row = description.Width * element_bytes(description.Format, description.NumChannels);
  array->pitch = (row + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  array->slice = array->pitch * array->rows();
  // Sides of at most 2^17: the product may pass 64 bits.
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(array->slice, array->slices(), &size)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult result = memory_.allocate(context, size, &array->base); result != CUDA_SUCCESS) return result;
  out = std::move(array);
  return CUDA_SUCCESS;
}

CUresult Arrays::create(ContextId context, const CUDA_ARRAY3D_DESCRIPTOR& description, CUarray* out) {
  if (const CUresult bad = check(description); bad != CUDA_SUCCESS) return bad;
  std::unique_ptr<Array> array;
  if (const CUresult result = make(context, description, array); result != CUDA_SUCCESS) return result;
  *out = reinterpret_cast<CUarray>(array.get());
  arrays_.push_back(std::move(array));
  return CUDA_SUCCESS;
}

CUresult Arrays::create_mipmapped(ContextId context, const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels,
                                  CUmipmappedArray* out) {
  if (const CUresult bad = check(description); bad != CUDA_SUCCESS) return bad;
  if (levels == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool layered = (description.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  const std::size_t longest = std::max({description.Width, description.Height, layered ? 0 : description.Depth});
  auto all = std::make_unique<MipmappedArray>();
  all->context = context;
  CUDA_ARRAY3D_DESCRIPTOR d = description;
  // More levels than there are sizes are as many as there are.
  for (unsigned level = 0; level < std::min(levels, static_cast<unsigned>(std::bit_width(longest))); ++level) {
    std::unique_ptr<Array> array;
    if (const CUresult result = make(context, d, array); result != CUDA_SUCCESS) {
      for (const auto& made : all->levels) memory_.free(made->base);
      return result;
    }
    array->is_level = true;
    all->levels.push_back(std::move(array));
    const auto half = [](std::size_t& n) { n = n > 1 ? n / 2 : n; };
    half(d.Width);
    half(d.Height);
    if (!layered) half(d.Depth);
  }
  *out = reinterpret_cast<CUmipmappedArray>(all.get());
  mipmapped_.push_back(std::move(all));
  return CUDA_SUCCESS;
}

Array* Arrays::find(CUarray handle) const {
  if (const auto found = place_in(arrays_, handle); found != arrays_.end()) return found->get();
  for (const auto& one : mipmapped_) {
    if (const auto level = place_in(one->levels, handle); level != one->levels.end()) return level->get();
  }
  return nullptr;
}

MipmappedArray* Arrays::find(CUmipmappedArray handle) const {
  const auto found = place_in(mipmapped_, handle);
  return found == mipmapped_.end() ? nullptr : found->get();
}

CUresult Arrays::destroy(CUarray handle) {
  const auto found = place_in(arrays_, handle);
  if (found == arrays_.end()) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = memory_.free((*found)->base);
  arrays_.erase(found);
  return result;
}

CUresult Arrays::destroy(CUmipmappedArray handle) {
  const auto found = place_in(mipmapped_, handle);
  if (found == mipmapped_.end()) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& level : (*found)->levels) memory_.free(level->base);
  mipmapped_.erase(found);
  return CUDA_SUCCESS;
}

void Arrays::release_context(ContextId context) {
  std::erase_if(arrays_, [&](const auto& one) { return one->context == context; });
  std::erase_if(mipmapped_, [&](const auto& one) { return one->context == context; });
}

}  // namespace cudasim
